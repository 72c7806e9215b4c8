"""Lower keys and values that lie in pages which a table names, or in two tensors: an attention reads each where it lies.

Nothing is gathered or joined first.
"""

from __future__ import annotations

from tools.codegen.ir.atoms import Dims
from tools.codegen.ir.builder import Value
from tools.codegen.ir.dtypes import is_signed
from tools.codegen.ir.graph import Node, Ref
from tools.codegen.ir.reindex import flat, reindexed, spread
from tools.codegen.ir.views import is_view
from tools.codegen.lower.region.lowering import Lowering


def absorb_pages(low: Lowering, node: Node) -> bool:
    """Take what an index of whole numbers gathers as an operand of an attention; False where it is none.

    Beside a table of pages, positions along dimensions as they are may name these.
    """
    if node.op != "index" or not low.flow.chained or low.flow.is_internal(node.args[0]):
        return False
    source, indices = node.args[0], node.args[1]
    given = {place: index for place, index in enumerate(indices) if index is not None}
    first = min(given, default=0)
    if not given or list(given) != list(range(first, first + len(given))) or not all(isinstance(each, Ref) for each in given.values()):
        return False
    if any(low.flow.is_internal(index) or not is_signed(low.graph.meta(index).dtype) for index in given.values()):
        return False
    b, shape = low.b, low.graph.meta(source).shape
    found, at = low.read_again(source), dict[int, Value]()
    dims: Dims = ()
    if b.exprs[found.value.id].op != "load":
        return False
    for place, index in given.items():
        counted = _counted(low, index)
        table = low.value(index) if counted else low.read_again(index)
        page = table.value if counted else b.call("where", table.value < 0, table.value + b.number(shape[place]), table.value)
        if not counted:
            b.label(page, "page")
        dims, at = b.atoms.broadcast(dims, table.dims), at | spread(b, found.dims[place], page)
    value = reindexed(b, found.value, at)
    low.define(node, value, (*found.dims[:first], *dims, *found.dims[first + len(given) :]))
    return True


def _counted(low: Lowering, ref: Ref) -> bool:
    """Whether an index is positions along a dimension as they are, seen through views."""
    node = low.graph.by_name.get(ref.name)
    while node is not None and is_view(node) and node.refs:
        node = low.graph.by_name.get(node.refs[0].name)
    return node is not None and node.op == "arange" and len(node.args) == 1


def absorb_joined(low: Lowering, node: Node) -> bool:
    """Take two tensors in memory, one laid after the other, as an operand of an attention; False where they are none."""
    if node.op != "cat" or not low.flow.chained or len(node.args[0]) != 2 or any(low.flow.is_internal(ref) for ref in node.args[0]):
        return False
    b, atoms = low.b, low.b.atoms
    metas, place = [low.graph.meta(ref) for ref in node.args[0]], node.argument(1, "dim", 0) % len(node.outputs[0].shape)
    if any(meta.dtype != node.outputs[0].dtype or len(meta.shape) != len(node.outputs[0].shape) for meta in metas):
        return False
    first, second = (low.read_again(ref) for ref in node.args[0])
    if any(b.exprs[each.value.id].op != "load" for each in (first, second)):
        return False
    for other, (one, two) in enumerate(zip(first.dims, second.dims, strict=True)):
        if other != place:
            atoms.unify(one, two)
    (whole,) = atoms.dims((node.outputs[0].shape[place],))
    position, size = flat(b, whole), b.number(metas[0].shape[place])
    before, after = position < size, b.call("ge", position, size)
    pieces = (
        reindexed(b, first.value, spread(b, first.dims[place], position), before),
        reindexed(b, second.value, spread(b, second.dims[place], position - size), after),
    )
    dims = atoms.resolve(first.dims)
    low.define(node, b.call("where", before, *pieces), (*dims[:place], whole, *dims[place + 1 :]))
    return True
