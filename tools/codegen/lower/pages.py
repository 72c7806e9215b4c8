"""Lower keys and values that lie in pages which a table names: an attention reads each where it lies, and nothing is gathered first."""

from __future__ import annotations

from tools.codegen.ir.dtypes import is_signed
from tools.codegen.ir.graph import Node, Ref
from tools.codegen.ir.reindex import reindexed, spread
from tools.codegen.lower.lowering import Lowering


def absorb_pages(low: Lowering, node: Node) -> bool:
    """Take what an index of whole numbers gathers along one dimension as an operand of an attention; False where it is none."""
    if node.op != "index" or not low.chained or low.is_internal(node.args[0]):
        return False
    source, indices = node.args[0], node.args[1]
    given = [(place, index) for place, index in enumerate(indices) if index is not None]
    if len(given) != 1:
        return False
    ((place, index),) = given
    if not isinstance(index, Ref) or low.is_internal(index) or not is_signed(low.graph.meta(index).dtype):
        return False
    b, sizes = low.b, low.graph.meta(source).shape[place]
    found, table = low.read_again(source), low.read_again(index)
    if b.exprs[found.value.id].op != "load":
        return False
    page = b.call("where", table.value < 0, table.value + b.number(sizes), table.value)
    b.label(page, "page")
    value = reindexed(b, found.value, spread(b, found.dims[place], page))
    low.define(node, value, (*found.dims[:place], *table.dims, *found.dims[place + 1 :]))
    return True
