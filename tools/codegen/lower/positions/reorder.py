"""Lower what only changes the order of reading: shuffles, flips, rolls, repeats, borders."""

from __future__ import annotations

from collections.abc import Callable

from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.dtypes import COMPUTE
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Node
from tools.codegen.ir.kernel import Lowered
from tools.codegen.ir.reindex import flat
from tools.codegen.ir.sizes import Sizes
from tools.codegen.lower.positions.view_rules import Place, along, numbers
from tools.codegen.lower.region.general import GeneralLowering, GeneralRule


def _view_like(low: GeneralLowering, node: Node) -> None:
    """A shuffle is a reshape, a permutation and a reshape: only the order of reading changes."""
    rule = SHUFFLES[node.op]
    found = rule(low, node, low.value(node.args[0]))
    low.define(node, found.value, found.dims)


def _depth_to_space(low: GeneralLowering, node: Node, base: Lowered) -> Lowered:
    b, factor, rank = low.b, int(node.args[1]), len(base.dims)
    shape, small = low.graph.meta(node.args[0]).shape, (factor,) * low.traces
    channels = tuple(size // factor**2 for size in shape[-3])
    dims = b.atoms.regroup(base.dims, (*shape[: rank - 3], channels, small, small, *shape[-2:]))
    *front, channel, down, right, rows, cols = dims
    return Lowered(base.value, (*front, channel, (*rows, *down), (*cols, *right)))


def _space_to_depth(low: GeneralLowering, node: Node, base: Lowered) -> Lowered:
    b, factor, rank = low.b, int(node.args[1]), len(base.dims)
    shape, small = low.graph.meta(node.args[0]).shape, (factor,) * low.traces
    height, width = (tuple(size // factor for size in sizes) for sizes in shape[-2:])
    dims = b.atoms.regroup(base.dims, (*shape[: rank - 2], height, small, width, small))
    *front, channel, rows, down, cols, right = dims
    return Lowered(base.value, (*front, (*channel, *down, *right), rows, cols))


def _channel_shuffle(low: GeneralLowering, node: Node, base: Lowered) -> Lowered:
    b, groups = low.b, int(node.args[1])
    shape = low.graph.meta(node.args[0]).shape
    each = tuple(size // groups for size in shape[1])
    batch, group, inner, *rest = b.atoms.regroup(base.dims, (shape[0], (groups,) * low.traces, each, *shape[2:]))
    return Lowered(base.value, (batch, (*inner, *group), *rest))


SHUFFLES: dict[str, Callable[[GeneralLowering, Node, Lowered], Lowered]] = {
    "pixel_shuffle": _depth_to_space, "pixel_unshuffle": _space_to_depth, "channel_shuffle": _channel_shuffle,
}  # fmt: skip


def _each_dim(low: GeneralLowering, node: Node, wanted: dict[int, Place]) -> None:
    found = low.value(node.args[0])
    for place, where in wanted.items():
        found = along(low, found, place, node.outputs[0].shape[place], where)
    low.define(node, found.value, found.dims)


def _flip(low: GeneralLowering, node: Node) -> None:
    shape = node.outputs[0].shape
    _each_dim(low, node, {place: _from_end(low, shape[place]) for place in (int(each) % len(shape) for each in node.args[1])})


def _from_end(low: GeneralLowering, sizes: Sizes) -> Place:
    last = low.b.number(tuple(size - 1 for size in sizes))
    return lambda position: last - position


def _roll(low: GeneralLowering, node: Node) -> None:
    shape, places = node.outputs[0].shape, node.argument(2, "dims", [])
    if not places:
        raise LoweringError(f"{node.target} of a tensor as one row is not generated")
    given = zip(node.args[1], (int(each) % len(shape) for each in places), strict=True)
    _each_dim(low, node, {place: _rolled(low, shift, shape[place]) for shift, place in given})


def _rolled(low: GeneralLowering, shift: object, sizes: Sizes) -> Place:
    if not isinstance(shift, int):
        raise LoweringError("a roll by what is no number is not generated")
    b, size = low.b, low.b.number(sizes)
    # by more than there are elements is by the rest
    by = b.const(abs(shift)) if abs(shift) <= min(sizes) else b.call("mod", b.const(abs(shift)), size)
    back = size - by if shift > 0 else by
    return lambda position: b.call("mod", position + back, size)


def _repeat(low: GeneralLowering, node: Node) -> None:
    """Repeat whole dimensions: a dimension of copies before each, which nothing is read along."""
    found, atoms = low.value(node.args[0]), low.b.atoms
    times = [numbers(low, each) for each in node.args[1]]
    dims = ((),) * (len(times) - len(found.dims)) + atoms.resolve(found.dims)
    low.define(node, found.value, tuple((*atoms.dims((count,))[0], *dim) for count, dim in zip(times, dims, strict=True)))


def _repeat_each(low: GeneralLowering, node: Node) -> None:
    """Repeat each element: a dimension of copies behind."""
    found, atoms = low.value(node.args[0]), low.b.atoms
    if node.overload != "self_int" or node.argument(2, "dim") is None:
        raise LoweringError(f"{node.target} by numbers that are data is not generated")
    dims = list(atoms.resolve(found.dims))
    place = int(node.argument(2, "dim")) % len(dims)
    dims[place] = (*dims[place], *atoms.dims((numbers(low, node.args[1]),))[0])
    low.define(node, found.value, tuple(dims))


def _pad(low: GeneralLowering, node: Node) -> None:
    """Surround a tensor by a number, or by what lies inside of it."""
    widths, mode, fill = node.argument(1, "pad"), node.argument(2, "mode", "constant"), node.argument(3, "value")
    if node.op != "pad":
        mode, fill = PADS[node.op], node.argument(2, "value", 0) if node.op == "constant_pad_nd" else None
    found, shape, b = low.value(node.args[0]), low.graph.meta(node.args[0]).shape, low.b
    insides: list[Value] = []
    for number in range(len(widths) // 2):
        before, after = numbers(low, widths[2 * number]), numbers(low, widths[2 * number + 1])
        if any((*before, *after)):
            place = len(shape) - 1 - number
            border = _Border(b, before, shape[place], mode)
            inside = border.inside if mode == "constant" else None
            found = along(low, found, place, node.outputs[0].shape[place], border.where, inside)
            insides += [inside(flat(b, found.dims[place]))] if inside else []
    value = found.value
    for each in insides:
        value = b.call("where", each, value, fill or 0)
    low.define(node, b.compute(value, COMPUTE[node.outputs[0].dtype]), found.dims)


class _Border:
    """What lies before and after one dimension."""

    def __init__(self, b: Builder, before: Sizes, sizes: Sizes, mode: str) -> None:
        self.b, self.mode = b, mode
        self.start, self.size, self.last = b.number(before), b.number(sizes), b.number(tuple(size - 1 for size in sizes))

    def where(self, position: Value) -> Value:
        """Say which element lies at a position."""
        b, moved = self.b, position - self.start
        if self.mode == "reflect":
            moved = b.call("abs", moved)
            return b.call("where", moved > self.last, 2 * self.last - moved, moved)
        if self.mode == "replicate":
            return b.call("where", moved < 0, 0, b.call("where", moved > self.last, self.last, moved))
        return b.call("mod", moved + self.size, self.size) if self.mode == "circular" else moved

    def inside(self, position: Value) -> Value:
        """Say whether a position lies in the tensor."""
        return self.b.call("and", self.b.call("ge", position, self.start), position < self.start + self.size)


PADS = {
    "constant_pad_nd": "constant",
    **{f"reflection_pad{rank}d": "reflect" for rank in (1, 2, 3)},
    **{f"replication_pad{rank}d": "replicate" for rank in (1, 2, 3)},
}
"""Modes of what has an operator of its own."""
REORDER_RULES: dict[str, GeneralRule] = {
    **dict.fromkeys(SHUFFLES, _view_like), "flip": _flip, "roll": _roll, "repeat": _repeat, "repeat_interleave": _repeat_each,
    "pad": _pad, **dict.fromkeys(PADS, _pad),
}  # fmt: skip
"""Operators by name."""
