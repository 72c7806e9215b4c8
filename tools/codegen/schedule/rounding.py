"""What a policy lets a region round: convolutions and recurrent layers as the library's own do on the same device."""

from __future__ import annotations

from collections.abc import Iterable

from tools.codegen.ir.graph import Node, OperatorGraph
from tools.codegen.ir.operators.families import CONVOLUTIONS, RECURRENT
from tools.codegen.ir.sizes import is_one
from tools.records import PrecisionPolicy


def policy_of_region(graph: OperatorGraph, names: Iterable[str], policy: PrecisionPolicy) -> PrecisionPolicy:
    """Say what a policy comes to for some operators that share a kernel.

    Under `default` cuDNN decides by itself which convolutions take TF32, and those in groups did not: a grouped 1x1 convolution of
    float32 was off by 1.3e-7 on an H100 (2026-11-25). Those of one channel are taken not to, either: one of 27 elements into two channels
    was judged wrong there in single halves (2026-11-27). They round only where another convolution does so in the same graph.
    """
    operators = {graph.by_name[name].op for name in names}
    convolves = not operators.isdisjoint(CONVOLUTIONS) and any(_may_round(graph, node) for node in graph.nodes)
    return policy.of_operator(cudnn=convolves or not operators.isdisjoint(RECURRENT))


def _may_round(graph: OperatorGraph, node: Node) -> bool:
    """Whether it is a convolution of several channels without groups, or a transposed one, of which nothing else was seen."""
    if node.op not in CONVOLUTIONS:
        return False
    several = not is_one(graph.meta(node.args[1]).shape[1])
    return CONVOLUTIONS[node.op][1] or (several and node.argument(6, "groups", 1) == 1)
