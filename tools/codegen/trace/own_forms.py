"""What operators are that neither a rule takes nor PyTorch writes out, in operators that have rules; each raises where it has no such form.

They are traced like PyTorch's own decompositions: the first argument of each is the tensor where it reads one, the others are ATen's.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, _refs

MOST_EDGES = 64
"""Elements of a sorted row up to which comparing with all of them is a search."""


class NoFormError(ValueError):
    """A call has no form of other operators."""


def _kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    values, places = torch.sort(x, dim)
    return _kept(values.select(dim, k - 1), dim, keepdim), _kept(places.select(dim, k - 1), dim, keepdim)


def _median_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    values, places = torch.sort(x, dim)
    middle = (x.shape[dim] - 1) // 2
    # what is no number comes last, and is the median where there is any
    is_none = values.select(dim, -1) != values.select(dim, -1)
    found = (torch.where(is_none, each.select(dim, -1), each.select(dim, middle)) for each in (values, places))
    value, place = (_kept(each, dim, keepdim) for each in found)
    return value, place


def _median(x: Tensor) -> Tensor:
    return _median_dim(x.reshape(-1), 0)[0]


def _nanmedian_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    values, places = torch.sort(x, dim)
    numbers = x.isnan().logical_not().sum(dim, keepdim=True)
    middle = torch.div(numbers - 1, 2, rounding_mode="floor").clamp_min(0)
    value, place = (each.gather(dim, middle) for each in (values, places))
    return (value, place) if keepdim else (value.squeeze(dim), place.squeeze(dim))


def _nanmedian(x: Tensor) -> Tensor:
    return _nanmedian_dim(x.reshape(-1), 0)[0]


def _kept(x: Tensor, dim: int, keepdim: bool) -> Tensor:
    return x.unsqueeze(dim) if keepdim else x


def _prod_dim(x: Tensor, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    return _kept(torch.cumprod(x, dim, dtype=dtype).select(dim, -1), dim, keepdim)


def _prod(x: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    return _prod_dim(x.reshape(-1), 0, dtype=dtype)


def _index_reduce(x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    shape = [1] * source.dim()
    shape[dim] = -1
    return torch.scatter_reduce(x, dim, index.reshape(shape).expand(source.shape), source, reduce, include_self=include_self)


def _searchsorted(
    edges: Tensor, x: Tensor, *, out_int32: bool = False, right: bool = False, side: str | None = None, sorter: Tensor | None = None
) -> Tensor:
    if sorter is not None or edges.shape[-1] > MOST_EDGES:
        raise NoFormError("a long row is searched by halves")
    row, wanted = edges.unsqueeze(-2), x.unsqueeze(-1)
    before = ~(row > wanted) if right or side == "right" else ~(row >= wanted)
    return before.sum(-1).to(torch.int32 if out_int32 else torch.int64)


def _addbmm(x: Tensor, left: Tensor, right: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    rows = left.permute(1, 0, 2).reshape(left.shape[1], -1)
    return x * beta + (rows @ right.reshape(-1, right.shape[2])) * alpha


def _grid_sampler_3d(x: Tensor, grid: Tensor, interpolation: int, padding: int, align_corners: bool) -> Tensor:
    if grid.shape[-1] != 3 or interpolation > 1 or padding > 1:
        raise NoFormError("cubes, and what is reflected at borders, are not written out")
    flat, found, sides = x.reshape(*x.shape[:2], -1), None, []
    for axis, size in enumerate(x.shape[:1:-1]):
        at = grid[..., axis]
        at = (at + 1) * ((size - 1) / 2) if align_corners else ((at + 1) * size - 1) / 2
        at = at.clamp(0, size - 1) if padding else at
        low = at.round() if interpolation else at.floor()
        sides.append([_side(at, low + step, size, interpolation) for step in range(1 if interpolation else 2)])
    for (of_z, z), (of_y, y), (of_x, column) in itertools.product(*reversed(sides)):
        place = (z * x.shape[3] + y) * x.shape[4] + column
        index = place.reshape(x.shape[0], 1, -1).expand(-1, x.shape[1], -1)
        part = flat.gather(2, index).reshape(*x.shape[:2], *grid.shape[1:4]) * (of_z * of_y * of_x).unsqueeze(1)
        found = part if found is None else found + part
    assert found is not None
    return found


def _side(at: Tensor, cell: Tensor, size: int, interpolation: int) -> tuple[Tensor, Tensor]:
    """Give the share of the cells on one side of positions along an axis, none of those outside, and where they are."""
    share = torch.ones_like(at) if interpolation else 1 - (at - cell).abs()
    return torch.where((cell >= 0) & (cell <= size - 1), share, 0.0), cell.clamp(0, size - 1).long()


def _fake_quantize(x: Tensor, scale: Tensor, zero: Tensor, low: int, high: int) -> tuple[Tensor, Tensor]:
    """Round to a grid and clamp, as quantisation-aware training does; by the scale's reciprocal, at least in float32, like the library.

    What is no number is the least of the grid, as the library's cast to whole numbers makes it.
    """
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    steps = torch.round(wide * scale.reciprocal()) + zero
    bounded = torch.where(steps.isnan(), float(low), steps).clamp(low, high)
    return ((bounded - zero) * scale).to(x.dtype), (steps >= low) & (steps <= high)


def _fake_quantize_by_numbers(x: Tensor, scale: float, zero: int, low: int, high: int) -> tuple[Tensor, Tensor]:
    made = torch.full((), scale, dtype=torch.float32, device=x.device)
    return _fake_quantize(x, made, torch.full((), float(zero), dtype=torch.float32, device=x.device), low, high)


def _fake_quantize_by_channel(x: Tensor, scale: Tensor, zero: Tensor, axis: int, low: int, high: int) -> tuple[Tensor, Tensor]:
    """Do the same with a scale and a zero point for each channel, as the library does on a GPU.

    It adds the zero point to a whole number of 64 bits, which wraps around where it is the largest or the least of these: so are numbers
    beyond them, and the least is what is no number. On a CPU all of those are the least of the grid.
    """
    if zero.is_floating_point():
        raise NoFormError("a zero point between two whole numbers is added before it is rounded")
    shape = [1] * x.dim()
    shape[axis] = -1
    scale, zero = scale.reshape(shape), zero.reshape(shape)
    rounded = torch.round(x.to(torch.promote_types(x.dtype, torch.float32)) * scale.reciprocal())
    least, largest = torch.where(zero < 0, float(high), float(low)), torch.where(zero > 0, float(low), float(high))
    steps = rounded + zero
    found = torch.where(rounded >= 2.0**63, largest, torch.where(rounded > -(2.0**63), steps, least))
    return ((found.clamp(low, high) - zero) * scale).to(x.dtype), (steps >= low) & (steps <= high)


def _fake_quantize_if(x: Tensor, scale: Tensor, zero: Tensor, enabled: Tensor, low: int, high: int) -> tuple[Tensor, Tensor]:
    made, kept = _fake_quantize(x, scale, zero, low, high)
    return torch.where(enabled != 0, made, x), kept | (enabled == 0)


def _linspace(start: float, end: float, steps: int, *, dtype: torch.dtype | None = None, **where: Any) -> Tensor:
    """Count from both ends as PyTorch does; one position is the start, by the same operators as several."""
    dtype = dtype or torch.get_default_dtype()
    if not dtype.is_floating_point:
        return _refs.linspace(start, end, steps, dtype=dtype, **where)  # type: ignore[no-any-return]
    wide = torch.promote_types(dtype, torch.float32)
    places = torch.arange(0, steps, **where)
    others = steps - 1 - places
    # a number that is divided by one less than the number of positions would have no value for one of these
    step = torch.full((), float(end - start), dtype=wide, device=where.get("device")) / (places + others).clamp_min(1).to(wide)
    first, second = start + step * places.to(wide), end - step * others.to(wide)
    return torch.where(places < steps / 2, first, second).to(dtype)


FORMS: dict[str, Callable[..., Any]] = {
    "aten.fake_quantize_per_tensor_affine_cachemask.default": _fake_quantize_by_numbers,
    "aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default": _fake_quantize_if,
    "aten.fake_quantize_per_channel_affine_cachemask.default": _fake_quantize_by_channel,
    "aten.kthvalue.default": _kthvalue,
    "aten.median.dim": _median_dim,
    "aten.median.default": _median,
    "aten.nanmedian.dim": _nanmedian_dim,
    "aten.nanmedian.default": _nanmedian,
    "aten.prod.dim_int": _prod_dim,
    "aten.prod.default": _prod,
    "aten.index_reduce.default": _index_reduce,
    "aten.searchsorted.Tensor": _searchsorted,
    "aten.addbmm.default": _addbmm,
    "aten.grid_sampler_3d.default": _grid_sampler_3d,
    "aten.grid_sampler.default": _grid_sampler_3d,
    "aten.linspace.default": _linspace,
}
"""By operator."""
