"""A vector that is added to a linear layer's result is the layer's bias: its product ends with the addition, whoever runs it."""

from __future__ import annotations

from collections.abc import Sequence

from tools.codegen.ir.graph import Node, Ref
from tools.codegen.rewrite.rewriter import Rewriter

BIAS = 2
"""Where a linear layer has its own."""


def bias_of_linear(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write a linear layer without a bias, which only this addition reads, with what is added to it."""
    if node.kwargs or len(node.args) != 2 or not all(isinstance(arg, Ref) for arg in node.args):
        return None
    for place, ref in enumerate(node.args):
        layer, bias = _unbiased(rewriter, ref), node.args[1 - place]
        if layer is not None and _is_bias(rewriter, bias, layer):
            return (Node(node.name, layer.target, (*layer.args[:BIAS], bias), {}, node.outputs),)
    return None


def _unbiased(rewriter: Rewriter, ref: Ref) -> Node | None:
    """Find the linear layer without a bias that makes a value of which nothing but this is read."""
    layer = next((each for each in rewriter.nodes if each.name == ref.name and each.op == "linear"), None)
    if layer is None or ref in rewriter.graph.returned or len(rewriter.graph.users.get(layer.name, ())) != 1:
        return None
    return layer if layer.argument(BIAS, "bias") is None else None


def _is_bias(rewriter: Rewriter, ref: Ref, layer: Node) -> bool:
    if ref.index:
        return False
    own, result = rewriter.metas[ref.name], layer.outputs[0]
    return own.shape == result.shape[-1:] and own.dtype == result.dtype
