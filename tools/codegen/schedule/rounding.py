"""What a policy lets a region round: convolutions and recurrent layers as the library's own do on the same device."""

from __future__ import annotations

from collections.abc import Iterable

from tools.codegen.ir.graph import Node, OperatorGraph
from tools.codegen.ir.operators.families import CONVOLUTIONS, RECURRENT
from tools.records import PrecisionPolicy

CHANNELS = 16
"""Input channels from which on cuDNN is taken to round: those of 3 and 8 did not, those of 16 to 64 did (an H100, 2026-11-28)."""
WIDE_WINDOW = 5
"""Longest side of a window from which on cuDNN does not round a transposed convolution with a stride."""
BIDIRECTIONAL = 7
"""Place of the argument of that name in ATen's recurrent operators."""


def policy_of_region(graph: OperatorGraph, names: Iterable[str], policy: PrecisionPolicy) -> PrecisionPolicy:
    """Say what a policy comes to for some operators that share a kernel.

    Under `default` cuDNN decides by itself which convolutions take TF32, and those in groups did not: a grouped 1x1 convolution of
    float32 was off by 1.3e-7 on an H100 (2026-11-25). Nor did those of few channels: seven of KernelBench's level 2, of 3 and of 8
    channels in two and three dimensions, were off by 2.4e-7 at most there (2026-11-28); those of 64 and of 128 did. Each is asked by
    itself: a network whose first norm takes a mean of images away that are far from zero keeps what the first convolution rounds.
    """
    nodes = [graph.by_name[name] for name in names]
    return policy.of_operator(cudnn=any(may_round_convolution(graph, node) or _may_round_recurrent(node) for node in nodes))


def may_round_convolution(graph: OperatorGraph, node: Node) -> bool:
    """Whether it is a convolution for which cuDNN may take TF32 as it is written, where the policy lets it.

    That is one of many channels without groups, or a transposed one, unless it has a stride and a window of `WIDE_WINDOW` or more.

    Of 44 transposed ones of KernelBench three did not round, by their errors or by their times with TF32 and without: in windows of
    5 by 5 by 5, of 3 by 5 by 7 and of 3 by 5, all with strides. With strides and windows of 3 and 4, and in windows of 5 and 7 without
    strides, with groups and without, they did (an H100 and an H200, 2026-11-28).
    """
    if node.op not in CONVOLUTIONS:
        return False
    weight = graph.meta(node.args[1])
    if not CONVOLUTIONS[node.op][1]:
        return node.argument(6, "groups", 1) == 1 and weight.shape[1][0] >= CHANNELS
    stride = node.argument(3, "stride", 1)
    is_strided = any(step != 1 for step in (stride if isinstance(stride, list | tuple) else [stride]))
    return not is_strided or max(weight.written[2:]) < WIDE_WINDOW


def _may_round_recurrent(node: Node) -> bool:
    """Whether it is a recurrent layer of one direction: one of two was off by 5e-5 on an H200 where TF32 is by 1e-3 (2026-11-28)."""
    return node.op in RECURRENT and not node.argument(BIDIRECTIONAL, "bidirectional", False)
