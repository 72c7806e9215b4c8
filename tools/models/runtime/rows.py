"""Runs an operator that works on rows for rows in any number of dimensions, where its guard takes them in another shape."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tools.models.runtime.operators import INTERPRETED
from tools.models.runtime.patching import Entry


def taken(entry: Entry, x: torch.Tensor, weight: torch.Tensor) -> bool:
    """Whether a guard takes the rows of `x` (…, width) with a weight for each column."""
    runs = x.device == weight.device and (x.is_cuda or INTERPRETED)
    return runs and x.is_contiguous() and bool(entry.state(weight)) and _shaped(entry, x) is not None


def answered(entry: Entry, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Run the operator; the result has the shape of `x`."""
    found: list[torch.Tensor] = entry.operator.call(_shaped(entry, x), weight)
    return found[0].view(x.shape)


def _shaped(entry: Entry, x: torch.Tensor) -> torch.Tensor | None:
    """Give `x` in a shape that the guard takes."""
    return next((view for view in _views(x) if entry.fits(view)), None)


def _views(x: torch.Tensor) -> Iterator[torch.Tensor]:
    yield x
    rows = x.reshape(-1, x.shape[-1])
    yield rows
    yield rows.unsqueeze(0)
    yield rows.unsqueeze(1)
