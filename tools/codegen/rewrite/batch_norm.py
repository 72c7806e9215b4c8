"""Batch norm in training mode as its functional twin and two writes to its buffers."""

from __future__ import annotations

from collections.abc import Sequence

from tools.codegen.ir.graph import Node, Ref
from tools.codegen.rewrite.rewriter import Rewriter


def functional_batch_norm(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Name what batch norm in training mode writes to its running statistics, so that a kernel may compute it."""
    source, weight, bias, mean, variance, training, momentum, eps = node.args[:8]
    if not training or not isinstance(mean, Ref) or not isinstance(variance, Ref):
        return None
    out, of_mean, of_variance = node.outputs[0], rewriter.meta_of(mean), rewriter.meta_of(variance)
    arguments = (source, weight, bias, mean, variance, True, momentum, eps)
    outputs = (out, of_mean, of_variance, of_mean, of_variance)
    norm = Node(node.name, "aten._native_batch_norm_legit_functional.default", arguments, {}, outputs)
    updates = [
        rewriter.write(buffer, Ref(node.name, index), f"{node.name}_{word}", norm.outputs[index])
        for word, buffer, index in (("mean_update", mean, 3), ("variance_update", variance, 4))
    ]
    return norm, *updates
