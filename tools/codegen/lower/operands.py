"""Operands of products: computed in the region, or read from memory under atoms of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Ref
from tools.codegen.ir.kernel import Lowered
from tools.codegen.ir.views import is_view
from tools.codegen.lower.region.lowering import Lowering


def operand_of(low: Lowering, known: dict[Ref, Lowered], ref: Ref, read: Callable[[], Lowered]) -> Lowered:
    """Find one operand of a product: computed in the region, or read from memory under atoms of its own, once for all products."""
    if low.flow.is_internal(ref):
        found = low.value(ref)
        if any(low.b.exprs[expr].reduces() or low.b.exprs[expr].is_made_by_template for expr in low.b.made_of(found.value)):
            raise LoweringError("an operand of the product is made of another product or of a reduction in the same region")
        return found
    ref = next((one for one in known if _is_alike(low, one, ref)), ref)
    if ref not in known:
        known[ref] = read()
    return known[ref]


def _is_alike(low: Lowering, one: Any, two: Any) -> bool:
    """Whether two values are the same one, or views that say the same of it."""
    if one == two or not isinstance(one, Ref) or not isinstance(two, Ref) or one.index != two.index:
        return bool(one == two)
    first, second = low.graph.by_name.get(one.name), low.graph.by_name.get(two.name)
    if first is None or second is None or not is_view(first) or len(first.args) != len(second.args):
        return False
    said = [(node.target, node.kwargs, node.outputs) for node in (first, second)]
    return said[0] == said[1] and all(_is_alike(low, *args) for args in zip(first.args, second.args, strict=True))


def in_one_piece(low: Lowering, ref: Ref, summed: int) -> Lowered:
    """Read an operand; where a view has its summed dimension in several pieces of memory, the host writes the view out first."""
    loads = len(low.b.loads)
    found = low.read_again(ref)
    atoms = low.b.atoms.leaves(found.dims[summed])
    place = low.b.exprs[found.value.id].extra
    order = [atom for dim in low.b.atoms.resolve(low.b.loads[place].dims) for atom in dim]
    start = order.index(atoms[0]) if atoms and atoms[0] in order else 0
    if not atoms or tuple(order[start : start + len(atoms)]) == atoms:
        return found
    del low.b.loads[loads:]
    return low.read_as_it_is(ref)
