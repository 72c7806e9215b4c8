"""Lower concatenation and padding: each element of the result comes from the piece that its position along one dimension falls into."""

from __future__ import annotations

from tools.codegen.ir.atoms import Dims
from tools.codegen.ir.constant_tensors import as_dtype, is_fill
from tools.codegen.ir.dtypes import COMPUTE
from tools.codegen.ir.expr import Join, LoweringError
from tools.codegen.ir.graph import Node, Ref
from tools.codegen.ir.kernel import Lowered
from tools.codegen.ir.sizes import Sizes
from tools.codegen.lower.region.lowering import Lowering, Rule

MOST_PIECES = 8
"""Pieces of one concatenation: each costs every element of the result a test, and an address that may lead nowhere."""


def _cat(low: Lowering, node: Node) -> None:
    refs, out = node.args[0], node.result
    if not isinstance(refs, tuple | list) or not 1 < len(refs) <= MOST_PIECES:
        raise LoweringError(f"{node.target} of one tensor, or of more than {MOST_PIECES}, is not generated")
    metas = [low.graph.meta(ref) for ref in refs]
    if any(len(meta.shape) != len(out.shape) or meta.dtype != out.dtype for meta in metas):
        raise LoweringError(f"{node.target} of tensors of several dtypes or ranks is not generated")
    place = node.argument(1, "dim", 0) % len(out.shape)
    if any(0 in meta.shape[place] for meta in metas):
        raise LoweringError(f"{node.target} of a tensor that is empty at some sizes is not generated")
    _lay(low, node, place, [_piece(low, ref, place) for ref in refs])


def _stack(low: Lowering, node: Node) -> None:
    """Lay tensors one after the other along a dimension of its own, where each has one element."""
    refs, out = node.args[0], node.result
    if not 1 < len(refs) <= MOST_PIECES or any(low.graph.meta(ref).dtype != out.dtype for ref in refs):
        raise LoweringError(f"{node.target} of one tensor, of more than {MOST_PIECES}, or of several dtypes is not generated")
    place = node.argument(1, "dim", 0) % len(out.shape)
    values = [low.value(ref) if low.flow.is_internal(ref) or is_fill(low.graph, ref) else low.read_again(ref) for ref in refs]
    _lay(low, node, place, [Lowered(each.value, (*each.dims[:place], (), *each.dims[place:])) for each in values])


def _pad(low: Lowering, node: Node) -> None:
    """Lay a number before and after a tensor along one dimension."""
    widths, out = node.argument(1, "pad"), node.outputs[0]
    mode, number = node.argument(2, "mode", "constant"), node.argument(3, "value")
    if node.op == "constant_pad_nd":
        mode, number = "constant", node.argument(2, "value", 0)
    number = as_dtype(0 if number is None else number, out.dtype)
    if mode != "constant" or number is None or not all(isinstance(width, int) and width >= 0 for width in widths):
        raise LoweringError(f"{node.target} other than with a number, by fixed widths that are not negative, is not generated")
    padded = [place for place in range(len(widths) // 2) if widths[2 * place] or widths[2 * place + 1]]
    if len(padded) != 1 or any(0 in sizes for sizes in low.graph.meta(node.args[0]).shape):
        raise LoweringError(f"{node.target} along several dimensions, or of an empty tensor, is not generated")
    place = len(out.shape) - 1 - padded[0]
    middle = _piece(low, node.args[0], place)
    before, after = (_filled(low, out.shape, place, width, number) for width in widths[2 * padded[0] : 2 * padded[0] + 2])
    _lay(low, node, place, [piece for piece in (before, middle, after) if piece is not None])


def _filled(low: Lowering, shape: tuple[Sizes, ...], place: int, width: int, number: bool | float) -> Lowered | None:
    """Make a piece of one number, `width` long along the dimension."""
    if not width:
        return None
    dims = tuple(() if other != place or width == 1 else (low.b.atoms.new((width,) * low.b.atoms.traces),) for other in range(len(shape)))
    return Lowered(low.b.const(number), dims)


def _lay(low: Lowering, node: Node, place: int, pieces: list[Lowered]) -> None:
    """Lay values one after the other along a dimension."""
    if low.b.joins:
        raise LoweringError("two concatenations do not share a kernel")
    out, atoms = node.result, low.b.atoms
    whole = atoms.dims((out.shape[place],))
    dims: Dims = tuple(
        whole[0] if other == place else next((dim for dim in each if dim), ())
        for other, each in enumerate(zip(*(piece.dims for piece in pieces), strict=True))
    )
    for piece in pieces:
        for other, (one, two) in enumerate(zip(dims, piece.dims, strict=True)):
            if other != place and one and two:
                atoms.unify(one, two)
    parts = tuple(atoms.leaves(piece.dims[place]) for piece in pieces)
    named = [atom for part in parts for atom in part]
    if any(len(part) > 1 for part in parts) or len(set(named)) < len(named):
        raise LoweringError(f"{node.target} of a tensor with itself, or along a dimension that is cut into parts, is not generated")
    values = [low.b.compute(piece.value, COMPUTE[out.dtype]) for piece in pieces]
    varies = [set(atoms.leaves(tuple(low.b.exprs[value.id].atoms))) for value in values]
    same = tuple(number for number, part in enumerate(parts) if not set(part) & varies[number])
    if any(len(set(atoms.size(atom))) > 1 for number in same for atom in parts[number]):
        raise LoweringError(f"{node.target} of a tensor that is the same along a dimension whose size varies is not generated")
    low.define(node, low.b.join(values, Join(whole[0][0], parts, same)), dims)


def _piece(low: Lowering, ref: Ref, place: int) -> Lowered:
    """Find a piece: made in the region, or read under atoms of its own."""
    if low.flow.is_internal(ref) or is_fill(low.graph, ref):
        return low.value(ref)
    loads = len(low.b.loads)
    found = low.read_again(ref)
    if len(found.dims[place]) > 1:
        del low.b.loads[loads:]
        found = low.read_as_it_is(ref)
    low.b.label(found.value, ref.name)
    return found


JOIN_RULES: dict[str, Rule] = {"cat": _cat, "stack": _stack, "pad": _pad, "constant_pad_nd": _pad}
"""Operators that lay tensors, or a number and a tensor, one after the other."""
