"""Lower concatenation: each element of the result comes from the piece that its position along one dimension falls into."""

from __future__ import annotations

from tools.codegen.atoms import Dims
from tools.codegen.expressions import COMPUTE, Join, LoweringError
from tools.codegen.graph import Node, Ref
from tools.codegen.kernel import Lowered
from tools.codegen.lowering import Lowering
from tools.codegen.row_operand import Rule, argument

MOST_PIECES = 8
"""Pieces of one concatenation: each costs every element of the result a test, and an address that may lead nowhere."""


def _cat(low: Lowering, node: Node) -> None:
    refs, atoms, out = node.args[0], low.b.atoms, node.outputs[0]
    if low.b.joins:
        raise LoweringError("two concatenations do not share a kernel")
    if not isinstance(refs, tuple | list) or not 1 < len(refs) <= MOST_PIECES:
        raise LoweringError(f"{node.target} of one tensor, or of more than {MOST_PIECES}, is not generated")
    metas = [low.graph.meta(ref) for ref in refs]
    if any(len(meta.shape) != len(out.shape) or meta.dtype != out.dtype for meta in metas):
        raise LoweringError(f"{node.target} of tensors of several dtypes or ranks is not generated")
    place = argument(node, 1, "dim", 0) % len(out.shape)
    if any(0 in meta.shape[place] for meta in metas):
        raise LoweringError(f"{node.target} of a tensor that is empty at some sizes is not generated")
    pieces = [_piece(low, ref, place) for ref in refs]
    whole = atoms.dims((out.shape[place],))
    dims: Dims = (*pieces[0].dims[:place], *whole, *pieces[0].dims[place + 1 :])
    for piece in pieces[1:]:
        for other, (one, two) in enumerate(zip(dims, piece.dims, strict=True)):
            if other != place and one and two:
                atoms.unify(one, two)
    parts = tuple(atoms.leaves(piece.dims[place]) for piece in pieces)
    named = [atom for part in parts for atom in part]
    if any(len(part) > 1 for part in parts) or len(set(named)) < len(named):
        raise LoweringError(f"{node.target} of a tensor with itself, or along a dimension that is cut into parts, is not generated")
    values = [low.b.compute(piece.value, COMPUTE[out.dtype]) for piece in pieces]
    low.define(node, low.b.join(values, Join(whole[0][0], parts)), dims)


def _piece(low: Lowering, ref: Ref, place: int) -> Lowered:
    """Find a piece: made in the region, or read under atoms of its own."""
    if low.is_internal(ref):
        return low.value(ref)
    loads = len(low.b.loads)
    found = low.read_again(ref)
    if len(found.dims[place]) > 1:
        del low.b.loads[loads:]
        found = low.read_as_it_is(ref)
    low.b.label(found.value, ref.name)
    return found


JOINS: dict[str, Rule] = {"cat": _cat}
"""Operators that lay tensors one after the other."""
