"""Lookups in a table of a few given numbers, as codes of four bits have them: a choice among numbers, which any kernel can make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tools.codegen.ir.dtypes import is_signed
from tools.codegen.ir.graph import DType, Node, Ref
from tools.codegen.ir.operators.families import CASTS
from tools.codegen.rewrite.rewriter import Rewriter

MOST_CHOSEN = 16
"""Numbers of such a table: a choice among them is 15 selections, less than a product hides."""
CODES = frozenset({"uint8", "int8", "int16", "int32"})
"""Dtypes whose casts to wider whole numbers change nothing."""


def looked_up(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write a lookup of codes in a row of given numbers as a choice among these."""
    table, indices = node.args[0], node.args[1]
    made = {each.name: each for each in rewriter.nodes}
    given = made.get(table.name)
    if given is None or given.op != "numbers" or len(indices) != 1 or not isinstance(indices[0], Ref):
        return None
    numbers = given.args[0]
    if len(given.outputs[0].shape) != 1 or not 1 < len(numbers) <= MOST_CHOSEN or not is_signed(rewriter.metas[indices[0].name].dtype):
        return None
    codes = indices[0]
    cast = made.get(codes.name)
    if cast is not None and cast.op in CASTS and rewriter.metas[cast.args[0].name].dtype in CODES:
        codes = cast.args[0]
    chosen = (codes, list(numbers), DType(node.outputs[0].dtype))
    return (replace(node, target="kernelwright.chosen_number.default", args=chosen, kwargs={}),)
