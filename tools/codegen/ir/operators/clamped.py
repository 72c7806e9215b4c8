"""Whether a value cannot be out of a dtype's range, because it was clamped to it before."""

from __future__ import annotations

from tools.codegen.ir.dtypes import is_floating
from tools.codegen.ir.graph import Node, OperatorGraph, Ref
from tools.codegen.ir.operators.families import CASTS
from tools.codegen.ir.views import is_view

CLAMPS = frozenset({"clamp", "clip", "hardtanh"})
"""Operators whose next two arguments are bounds."""
WITHIN_ONE = frozenset({"sigmoid", "tanh", "sin", "cos", "softmax"})


def is_clamped(graph: OperatorGraph, ref: Ref, most: float) -> bool:
    """Whether a value is not a number, or at most `most` in magnitude, which every float holds; views and roundings are seen through."""
    node = graph.by_name.get(ref.name)
    if node is None:
        return False
    if node.op in CLAMPS:
        return all(isinstance(bound, int | float) and abs(bound) <= most for bound in _bounds(node))
    rounds = node.op in CASTS and is_floating(node.outputs[0].dtype)
    if (is_view(node) or rounds) and node.args and isinstance(node.args[0], Ref):
        return is_clamped(graph, node.args[0], most)
    return node.op in WITHIN_ONE and most >= 1.0


def _bounds(node: Node) -> tuple[object, object]:
    return node.argument(1, "min"), node.argument(2, "max")
