"""Where a wrong output is off: how many elements, in which part of it, and the first of them beside what is right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.complex_pairs import NAMES
from tools.evaluation.trusted.numerics import Errors
from tools.records import TensorSpec, WrongElement, WrongOutput

if TYPE_CHECKING:
    import torch

FIRST = 6
"""Elements that are shown."""
SAME = 0.01
"""Spread of the ratios of what came to what is right up to which they count as one factor."""
LARGEST = 1 << 27
"""Elements of an output that is looked at, at most: errors and magnitudes in float64 take some gigabytes."""
_PIECE = 1 << 24
"""Elements searched at once: their indices take 128 MiB."""


def pictured(spec: TensorSpec, value: torch.Tensor, oracle: torch.Tensor, reference: torch.Tensor, limit: Errors) -> WrongOutput:
    """Look at an output that is beyond its limit; all tensors have one shape. Of a complex one the last index is 0 or 1: its part."""
    if spec.dtype in NAMES:
        off, value, oracle = (each.reshape(*spec.shape, 2) for each in (_off(value, oracle, reference, limit), value, oracle))
    else:
        off = _off(value, oracle, reference, limit) if spec.is_float else (value != reference) & (value != oracle)
    return WrongOutput(
        output=spec.name,
        shape=tuple(value.shape),
        wrong=int(off.sum()),
        elements=value.numel(),
        box=_box(off),
        first=_first(off, value, oracle),
        factor=_factor(off, value, oracle) if spec.is_float else None,
    )


def _off(value: torch.Tensor, oracle: torch.Tensor, reference: torch.Tensor, limit: Errors) -> torch.Tensor:
    """Elements whose error is beyond the limit times the larger of their row's and the typical magnitude; the worst, where none is."""
    import torch

    keep = torch.isfinite(oracle) & torch.isfinite(reference)
    truth = torch.where(keep, oracle.double(), torch.zeros((), dtype=torch.float64, device=oracle.device))
    error = (value.double() - truth).abs()
    rows = truth.square().mean(-1, keepdim=True) if truth.dim() else truth.square()
    magnitude = rows.clamp(min=float(truth.square().mean())).sqrt()
    same = (value == reference) | (torch.isnan(value) & torch.isnan(reference))
    off = torch.where(keep, ~(error <= min(limit) * magnitude), ~same)
    # small errors in most of the elements add up, though each is within the limit of a row
    return off if bool(off.any()) else keep & (error >= error.max())


def _box(off: torch.Tensor) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for dimension, size in enumerate(off.shape):
        there = off.movedim(dimension, 0).reshape(size, -1).any(1).nonzero().flatten()
        found.append((int(there[0]), int(there[-1])) if len(there) else (0, 0))
    return tuple(found)


def _first(off: torch.Tensor, value: torch.Tensor, oracle: torch.Tensor) -> tuple[WrongElement, ...]:
    flat = off.reshape(-1)
    found: list[int] = []
    for start in range(0, flat.numel(), _PIECE):
        found += [start + int(place) for place in flat[start : start + _PIECE].nonzero().flatten()[: FIRST - len(found)]]
        if len(found) == FIRST:
            break
    given, right = value.reshape(-1), oracle.reshape(-1)
    return tuple(WrongElement(index=_index(at, value.shape), expected=float(right[at]), got=float(given[at])) for at in found)


def _index(place: int, shape: torch.Size) -> tuple[int, ...]:
    found: list[int] = []
    for size in reversed(shape):
        found.append(place % size)
        place //= size
    return tuple(reversed(found))


def _factor(off: torch.Tensor, value: torch.Tensor, oracle: torch.Tensor) -> float | None:
    """The one number by which what came is too large or too small; None where there is none, or too few elements tell."""
    at = off & (oracle.abs() > oracle.double().square().mean().sqrt() / 10)
    given, right = value[at].double(), oracle[at].double()
    if given.numel() < FIRST or not bool(given.isfinite().all()):
        return None
    ratios = given / right
    middle = float(ratios.median())
    return middle if float((ratios - middle).abs().max()) <= SAME * abs(middle) else None
