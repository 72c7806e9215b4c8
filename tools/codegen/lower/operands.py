"""Operands of products: computed in the region, read from memory under atoms of their own, or pieces that lie apart."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Node, Ref
from tools.codegen.ir.kernel import Lowered
from tools.codegen.ir.operators.joined_operands import TURNS, joined_operands
from tools.codegen.ir.views import is_view, see_through
from tools.codegen.lower.region.lowering import Lowering

Pair = tuple[Lowered, Lowered]
"""Both operands of a product."""


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


def absorb_operand_pieces(low: Lowering, node: Node) -> bool:
    """Keep the pieces of a concatenation whose products are of its pieces; False where the region needs the whole."""
    needed = joined_operands(low.graph).get(node.name) if node.op == "cat" else None
    if needed is None or low.is_step or not needed <= low.flow.inside:
        return False
    dim, atoms = node.argument(1, "dim", 0) % len(node.outputs[0].shape), low.b.atoms
    pieces = [operand_of(low, {}, ref, partial(in_one_piece, low, ref, dim)) for ref in node.args[0]]
    for piece in pieces[1:]:
        for place, (one, two) in enumerate(zip(pieces[0].dims, piece.dims, strict=True)):
            if place != dim and one and two:
                atoms.unify(one, two)
    low.pieces[Ref(node.name)] = tuple(pieces)
    return True


def paired(low: Lowering, left: Ref, right: Ref) -> tuple[Pair, ...]:
    """Pair the pieces of two operands that are laid out by concatenations of this region; none where they are whole."""
    return tuple(zip(_pieces(low, left), _pieces(low, right), strict=True))


def _pieces(low: Lowering, ref: Ref) -> tuple[Lowered, ...]:
    """Find the pieces behind an operand, turned as it is."""
    node = low.graph.by_name.get(ref.name)
    if ref in low.pieces:
        return tuple(Lowered(piece.value, low.b.atoms.resolve(piece.dims)) for piece in low.pieces[ref])
    if node is None or node.op not in TURNS:
        return ()
    return tuple(Lowered(each.value, see_through(low.b.atoms, node, each.dims)) for each in _pieces(low, node.args[0]))
