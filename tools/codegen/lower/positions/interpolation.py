"""Lower what mixes neighbours that lie at computed positions: interpolation to another size, and sampling by a grid of positions.

Each corner of the cell around a position is a read of the same formula elsewhere, so that what stands around it is one kernel with it.
Positions and weights are those of PyTorch (aten/src/ATen/native/UpSample.h and GridSampler.h), in float32.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tools.codegen.ir.atoms import Dims
from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.dtypes import COMPUTE
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Node
from tools.codegen.ir.kernel import Lowered
from tools.codegen.ir.reindex import flat, spread
from tools.codegen.ir.sizes import Sizes, Varying
from tools.codegen.lower.region.general import GeneralLowering, GeneralRule

FLOATS = ("float16", "bfloat16", "float32")
MODES, PADDINGS = ("bilinear", "nearest"), ("zeros", "border", "reflection")
"""Of `grid_sampler`, by number; further ones are not generated."""
CUBIC = -0.75
"""What PyTorch's cubic convolution has for A."""


@dataclass(frozen=True)
class _Corner:
    """One of the elements around a position along one dimension."""

    place: Value
    weight: Value | None
    """None where it counts fully."""
    inside: Value | None = None
    """Where it may lie outside of the tensor, and counts nothing there."""


def _last(b: Builder, sizes: Sizes) -> Value:
    """Give the last place along a dimension: where its size varies the host tells that, and might not tell one less."""
    return b.const(sizes[0] - 1) if len(set(sizes)) == 1 else b.number(sizes) - 1


def _around(b: Builder, position: Value, sizes: Sizes) -> tuple[_Corner, _Corner]:
    """Take the two elements around a position that lies in the tensor."""
    below = b.cast(b.call("floor", position), "int32")
    share, last = position - b.cast(below, "float32"), _last(b, sizes)
    above = b.call("where", b.call("ge", below, last), last, below + 1)
    return _Corner(below, 1.0 - share), _Corner(above, share)


def _around_cubic(b: Builder, position: Value, sizes: Sizes) -> tuple[_Corner, ...]:
    """Take the four elements around a position, the outermost again beyond the edges, with Keys's weights."""
    first = b.call("floor", position)
    share, last, below = position - first, _last(b, sizes), b.cast(first, "int32")
    weights = (_cubic_far(share + 1.0), _cubic_near(share), _cubic_near(1.0 - share), _cubic_far(2.0 - share))
    places = [below + step if step else below for step in (-1, 0, 1, 2)]
    inside = [b.call("where", place > last, last, b.call("where", place < 0, 0, place)) for place in places]
    return tuple(map(_Corner, inside, weights))


def _cubic_near(away: Value) -> Value:
    """Weigh an element that is less than one away."""
    return (away * (CUBIC + 2.0) - (CUBIC + 3.0)) * away * away + 1.0


def _cubic_far(away: Value) -> Value:
    """Weigh an element that is one to two away."""
    return ((away * CUBIC - 5.0 * CUBIC) * away + 8.0 * CUBIC) * away - 4.0 * CUBIC


def _mixed(low: GeneralLowering, found: Lowered, corners: Sequence[tuple[_Corner, ...]], dims: Dims) -> Value:
    """Sum the corners of a cell, by the dimensions at the end of `found` that these stand for."""
    b, first = low.b, len(found.dims) - len(corners)
    total: Value | None = None
    for chosen in itertools.product(*corners):
        at: dict[int, Value] = {}
        for place, corner in enumerate(chosen):
            at |= spread(b, found.dims[first + place], corner.place)
        inside = _all(b, [corner.inside for corner in chosen if corner.inside is not None])
        value = b.compute(low.gathered(found, at, dims, inside).value, "float32")
        value = value if inside is None else b.call("where", inside, value, 0.0)
        for corner in chosen:
            value = value if corner.weight is None else value * corner.weight
        total = value if total is None else total + value
    assert total is not None
    return total


def _all(b: Builder, conditions: Sequence[Value]) -> Value | None:
    found: Value | None = None
    for condition in conditions:
        found = condition if found is None else b.call("and", found, condition)
    return found


def _upsample(rank: int, position: Callable[[Builder, Value, Value], Value] | None, cubic: bool = False) -> GeneralRule:
    """Make the rule of an interpolation over the last dimensions: to the nearest element at a `position`; linear or cubic without one."""
    around = _around_cubic if cubic else _around

    def rule(low: GeneralLowering, node: Node) -> None:
        b, shape, out = low.b, low.graph.meta(node.args[0]).shape, node.outputs[0]
        if out.dtype not in FLOATS:
            raise LoweringError(f"{node.target} of {out.dtype} is not generated")
        found, linear = low.value(node.args[0]), position is None
        corners_meet = linear and bool(node.argument(2, "align_corners"))
        factors = _factors(node, 3 if linear else 2, rank)
        new = b.atoms.dims(out.shape[-rank:])
        corners: list[tuple[_Corner, ...]] = []
        for before, after, factor, dim in zip(shape[-rank:], out.shape[-rank:], factors, new, strict=True):
            index = b.cast(flat(b, dim), "float32")
            if corners_meet:
                scale = _ratio(b, tuple(size - 1 for size in before), tuple(max(size - 1, 1) for size in after))
                corners.append(around(b, index * scale, before))
                continue
            scale = _ratio(b, before, after) if factor is None else b.const(1.0 / factor)
            if position is None:
                where = (index + 0.5) * scale - 0.5
                corners.append(around(b, where if cubic else b.call("where", where < 0.0, 0.0, where), before))
            else:
                nearest, last = b.cast(position(b, index, scale), "int32"), _last(b, before)
                corners.append((_Corner(b.call("where", nearest > last, last, nearest), None),))
        dims = (*found.dims[:-rank], *new)
        low.define(node, b.compute(_mixed(low, found, corners, dims), COMPUTE[out.dtype]), dims)

    return rule


def _ratio(b: Builder, one: Sizes, two: Sizes) -> Value:
    """Divide sizes, rounded correctly to float32: the next number would move every position."""
    if len(set(zip(one, two, strict=True))) == 1:
        return b.const(one[0] / two[0])
    return b.call("mean", b.number(one) * 1.0, b.number(two))


def _factors(node: Node, place: int, rank: int) -> list[float | None]:
    """Read the factors that were given in the place of a size."""
    given = node.argument(place, "scale_factors") if node.overload == "vec" else list(node.args[place : place + rank])
    found = list(given or [None] * rank)
    if len(found) != rank or any(isinstance(each, Varying) for each in found):
        raise LoweringError(f"{node.target} by factors that vary with the sizes is not generated")
    return [None if each is None else float(each) for each in found]


def _sample(low: GeneralLowering, node: Node) -> None:
    """Take two-dimensional images at the positions of a grid, from -1 at one edge to 1 at the other."""
    b, shape, out = low.b, low.graph.meta(node.args[0]).shape, node.outputs[0]
    mode, padding = (int(node.argument(place, name, 0)) for place, name in ((2, "interpolation_mode"), (3, "padding_mode")))
    if len(shape) != 4 or out.dtype not in FLOATS or mode >= len(MODES) or padding >= len(PADDINGS):
        raise LoweringError(f"{node.target} of other than images, by other modes than bilinear and nearest, is not generated")
    corners_meet = bool(node.argument(4, "align_corners"))
    found, grid = low.value(node.args[0]), low.value(node.args[1])
    grid = low.unshared(grid, found.dims[1:])
    if found.dims[0] and grid.dims[0]:
        b.atoms.unify(found.dims[0], grid.dims[0])
    corners: list[tuple[_Corner, ...]] = []
    for place, sizes in ((1, shape[2]), (0, shape[3])):
        share = b.compute(low.take(grid, spread(b, grid.dims[3], b.const(place)), grid.dims[:3]).value, "float32")
        last = _last(b, sizes)
        where = (share + 1.0) * 0.5 * last if corners_meet else ((share + 1.0) * b.number(sizes) - 1.0) * 0.5
        if PADDINGS[padding] == "reflection":
            where = _reflected(b, where, sizes, corners_meet)
        corners.append(_sampled(b, where, sizes, MODES[mode], PADDINGS[padding]))
    dims = (found.dims[0] or grid.dims[0], found.dims[1], grid.dims[1], grid.dims[2])
    low.define(node, b.compute(_mixed(low, found, corners, dims), COMPUTE[out.dtype]), dims)


def _sampled(b: Builder, where: Value, sizes: Sizes, mode: str, padding: str) -> tuple[_Corner, ...]:
    """Take the elements around a position that may lie anywhere: no number is read outside, nor at a position that is none."""
    last = _last(b, sizes)
    low, high = (b.const(-1.0), last + 1.0) if padding == "zeros" else (b.const(0.0), last * 1.0)
    # a position that is no number fails both tests, and lies at the lower end
    where = b.call("where", where > low, b.call("where", where < high, where, high), low)
    if mode == "nearest":
        nearest = b.cast(b.call("round", where), "int32")
        return (_Corner(nearest, None, _inside(b, nearest, sizes)),)
    below, above = _around_anywhere(b, where)
    return tuple(_Corner(one.place, one.weight, _inside(b, one.place, sizes)) for one in (below, above))


def _reflected(b: Builder, where: Value, sizes: Sizes, corners_meet: bool) -> Value:
    """Fold a position back at the middles of the outermost elements, or at their edges; a single middle leaves no number."""
    span = b.number(tuple(size - 1 if corners_meet else size for size in sizes)) * 1.0
    first, period = (0.0 if corners_meet else -0.5), span * 2.0
    away = b.call("abs", where - first)
    rest = away - b.call("floor", away / period) * period
    return b.call("where", rest > span, period - rest, rest) + first


def _around_anywhere(b: Builder, position: Value) -> tuple[_Corner, _Corner]:
    below = b.cast(b.call("floor", position), "int32")
    share = position - b.cast(below, "float32")
    return _Corner(below, 1.0 - share), _Corner(below + 1, share)


def _inside(b: Builder, place: Value, sizes: Sizes) -> Value:
    return b.call("and", b.call("ge", place, 0), place < b.number(sizes))


def _floored(b: Builder, index: Value, scale: Value) -> Value:
    return b.call("floor", index * scale)


def _floored_centre(b: Builder, index: Value, scale: Value) -> Value:
    return b.call("floor", (index + 0.5) * scale)


INTERPOLATION_RULES: dict[str, GeneralRule] = {
    **{f"upsample_{word}{rank}d": _upsample(rank, None) for rank, word in ((1, "linear"), (2, "bilinear"), (3, "trilinear"))},
    **{f"upsample_nearest{rank}d": _upsample(rank, _floored) for rank in (1, 2, 3)},
    **{f"_upsample_nearest_exact{rank}d": _upsample(rank, _floored_centre) for rank in (1, 2, 3)},
    "upsample_bicubic2d": _upsample(2, None, cubic=True),
    "grid_sampler": _sample, "grid_sampler_2d": _sample,
}  # fmt: skip
"""Operators by name."""
