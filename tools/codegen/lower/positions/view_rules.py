"""See through views that a reshape or a permutation is not: slices, pieces, windows. Positions change, nothing is copied."""

from __future__ import annotations

from collections.abc import Callable

from tools.codegen.ir.builder import Value
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Node
from tools.codegen.ir.kernel import Lowered
from tools.codegen.ir.reindex import flat, spread
from tools.codegen.ir.sizes import Sizes, Varying
from tools.codegen.ir.views import VIEWS
from tools.codegen.lower.region.general import GeneralLowering, ViewRule

Place = Callable[[Value], Value]
"""Says at which position of the old dimension an element of the new one lies."""


def numbers(low: GeneralLowering, given: object, default: int = 0) -> Sizes:
    """Read a whole number of a node in every trace."""
    if isinstance(given, Varying):
        return tuple(int(value) for value in given.values)
    if given is not None and (isinstance(given, bool) or not isinstance(given, int)):
        raise LoweringError("a position that is no number is not generated")
    return (default if given is None else given,) * low.traces


def along(
    low: GeneralLowering, found: Lowered, place: int, sizes: Sizes, where: Place, guard: Callable[[Value], Value] | None = None
) -> Lowered:
    """Lay another dimension of `sizes` in the place of one, whose elements lie in the old one as `where` says."""
    b, dims = low.b, low.b.atoms.resolve(found.dims)
    new = b.atoms.dims((sizes,))[0]
    position = b.index(new) if new else b.const(0)
    at = spread(b, dims[place], where(position))
    return _as_it_lies(low, low.take(found, at, (*dims[:place], new, *dims[place + 1 :]), guard(position) if guard else None), new)


def _as_it_lies(low: GeneralLowering, taken: Lowered, new: tuple[int, ...]) -> Lowered:
    """Read a tensor as it stands where what is taken along `new` is all of it in order, as the inside of what was padded is."""
    b, record = low.b, low.b.exprs[taken.value.id]
    if record.op != "read" or record.extra[1] or b.loads[record.extra[0]].private:
        return taken
    load = b.loads[record.extra[0]]
    walked = [b.atoms.leaves(b.exprs[arg].extra) if b.exprs[arg].op == "index" else None for arg in record.args]
    other = [(dim, leaves) for dim, leaves in zip(b.atoms.resolve(load.dims), walked, strict=True) if dim != leaves]
    if len(other) != 1 or other[0][1] != b.atoms.leaves(new) or b.count(other[0][0]) != b.count(new):
        return taken
    b.atoms.unify(new, other[0][0])
    return Lowered(b.load(load.ref, load.meta)[0], b.atoms.resolve(taken.dims))


def shifted(low: GeneralLowering, start: Sizes, step: Sizes | None = None) -> Place:
    """Say that a dimension begins at `start` of another and takes every so manieth of its elements; each where no `step` is given."""

    def where(position: Value) -> Value:
        scaled = position if step is None or set(step) == {1} else position * low.b.number(step)
        return scaled if not any(start) else scaled + low.b.number(start)

    return where


def within(start: Sizes, sizes: Sizes) -> Sizes:
    """Count positions from the beginning, and no farther than a dimension reaches."""
    return tuple(min(max(each + size if each < 0 else each, 0), size) for each, size in zip(start, sizes, strict=True))


def _slice(low: GeneralLowering, node: Node, base: Lowered, _: int) -> Lowered:
    place = int(node.argument(1, "dim", 0)) % len(base.dims)
    before = low.graph.meta(node.args[0]).shape[place]
    start = within(numbers(low, node.argument(2, "start")), before)
    step = numbers(low, node.argument(4, "step", 1), 1)
    after = node.outputs[0].shape[place]
    if after == before and set(step) == {1}:
        return base
    return along(low, base, place, after, shifted(low, start, step))


def _select(low: GeneralLowering, node: Node, base: Lowered, _: int) -> Lowered:
    return _taken_out(low, node, base, int(node.args[1]) % len(base.dims), numbers(low, node.args[2]))


def _taken_out(low: GeneralLowering, node: Node, base: Lowered, place: int, index: Sizes) -> Lowered:
    """Take one element of a dimension, which goes."""
    b, dims = low.b, low.b.atoms.resolve(base.dims)
    start = within(index, low.graph.meta(node.args[0]).shape[place])
    return low.take(base, spread(b, dims[place], b.number(start)), (*dims[:place], *dims[place + 1 :]))


def _narrow(low: GeneralLowering, node: Node, base: Lowered, _: int) -> Lowered:
    place = int(node.args[1]) % len(base.dims)
    start = within(numbers(low, node.args[2]), low.graph.meta(node.args[0]).shape[place])
    return along(low, base, place, node.outputs[0].shape[place], shifted(low, start))


def _piece(low: GeneralLowering, node: Node, base: Lowered, index: int) -> Lowered:
    """One result of a chunk or a split: it begins where those before it end."""
    place = int(node.argument(2, "dim", 0)) % len(base.dims)
    before = [each.shape[place] for each in node.outputs[:index]]
    start = tuple(sum(sizes) for sizes in zip(*before, strict=True)) if before else (0,) * low.traces
    return along(low, base, place, node.outputs[index].shape[place], shifted(low, start))


def _unbind(low: GeneralLowering, node: Node, base: Lowered, index: int) -> Lowered:
    return _taken_out(low, node, base, int(node.argument(1, "dim", 0)) % len(base.dims), (index,) * low.traces)


def _unfold(low: GeneralLowering, node: Node, base: Lowered, _: int) -> Lowered:
    place, (size, step) = int(node.args[1]) % len(base.dims), (numbers(low, each) for each in node.args[2:4])
    b, dims = low.b, low.b.atoms.resolve(base.dims)
    window, inside = b.atoms.dims((node.outputs[0].shape[place], size))
    at = spread(b, dims[place], flat(b, window) * b.number(step) + flat(b, inside))
    return low.take(base, at, (*dims[:place], window, *dims[place + 1 :], inside))


def _diagonal(low: GeneralLowering, node: Node, base: Lowered, _: int) -> Lowered:
    offset, one, two = (int(node.argument(place, name, usual)) for place, name, usual in ((1, "offset", 0), (2, "dim1", 0), (3, "dim2", 1)))
    b, dims = low.b, low.b.atoms.resolve(base.dims)
    one, two = one % len(dims), two % len(dims)
    new = b.atoms.dims((node.outputs[0].shape[-1],))[0]
    rows, cols = (flat(b, new) + shift if shift else flat(b, new) for shift in (max(-offset, 0), max(offset, 0)))
    at = spread(b, dims[one], rows) | spread(b, dims[two], cols)
    return low.take(base, at, (*(dim for place, dim in enumerate(dims) if place not in (one, two)), new))


def _broadcast(low: GeneralLowering, node: Node, base: Lowered, _: int) -> Lowered:
    return Lowered(base.value, VIEWS["expand"](low.b.atoms, node, base.dims, node.outputs[0]))


def _move(low: GeneralLowering, node: Node, base: Lowered, _: int) -> Lowered:
    rank = len(base.dims)
    old, new = ([int(place) % rank for place in (given if isinstance(given, list | tuple) else [given])] for given in node.args[1:3])
    order = [place for place in range(rank) if place not in old]
    for target, source in sorted(zip(new, old, strict=True)):
        order.insert(target, source)
    return Lowered(base.value, tuple(base.dims[place] for place in order))


def _swap(low: GeneralLowering, node: Node, base: Lowered, _: int) -> Lowered:
    return Lowered(base.value, VIEWS["transpose"](low.b.atoms, node, base.dims, node.outputs[0]))


VIEW_RULES: dict[str, ViewRule] = {
    "slice": _slice, "select": _select, "narrow": _narrow, "unbind": _unbind, "unfold": _unfold, "diagonal": _diagonal,
    "broadcast_to": _broadcast, "movedim": _move, "swapaxes": _swap,
    **dict.fromkeys(("chunk", "split", "split_with_sizes", "tensor_split"), _piece),
}  # fmt: skip
"""Views by operator name."""
