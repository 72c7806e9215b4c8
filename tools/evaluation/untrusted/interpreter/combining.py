"""Makes Triton's interpreter reduce and scan by a function of the candidate's as a device does: in a tree, on whole blocks.

Its own way calls the function once an element, which takes a second for a few thousand and adds up rounding that no device has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


def install() -> None:
    """Replace both for the rest of this process."""
    from triton.runtime import interpreter

    # Triton ships no types
    reductions: Any = interpreter.ReduceOps
    scans: Any = interpreter.ScanOps
    reductions.generic_reduce = _reduced
    scans.generic_scan = _scanned


def _reduced(self: Any, given: tuple[Any, ...]) -> list[Any]:
    """Combine neighbours along the axis until one is left; the order of operands is kept."""
    import numpy as np

    whole, rank = self.axis is None, given[0].handle.data.ndim
    given, axis = self.unravel(given, self.axis)
    lines = [np.moveaxis(one.handle.data, axis, -1) for one in given]
    while lines[0].shape[-1] > 1:
        lines = _combined(self, given, [line[..., 0::2] for line in lines], [line[..., 1::2] for line in lines])
    found = [line[..., 0] for line in lines]
    if self.keep_dims:
        found = [made.reshape([1] * rank) if whole else np.expand_dims(made, axis) for made in found]
    return [self.to_tensor(made if made.shape else made.item(), one.dtype) for made, one in zip(found, given, strict=True)]


def _scanned(self: Any, given: tuple[Any, ...]) -> list[Any]:
    """Scan along the axis in log2(n) steps (Hillis and Steele, 1986)."""
    import numpy as np

    lines = [np.moveaxis(one.handle.data.copy(), self.axis, -1) for one in given]
    places = np.arange(lines[0].shape[-1])
    step = 1
    while step < len(places):
        # whole blocks, since blocks are powers of two: what comes round from the end is left out
        joined = _combined(self, given, [np.roll(line, step, axis=-1) for line in lines], lines)
        lines = [np.where(places >= step, made, line) for line, made in zip(lines, joined, strict=True)]
        step *= 2
    return [self.to_tensor(np.moveaxis(line, -1, self.axis), one.dtype) for line, one in zip(lines, given, strict=True)]


def _combined(self: Any, given: Sequence[Any], left: list[np.ndarray], right: list[np.ndarray]) -> list[np.ndarray]:
    """Call the candidate's function on blocks."""
    operands = [self.to_tensor(part, one.dtype) for parts in (left, right) for part, one in zip(parts, given, strict=True)]
    made = self.combine_fn.fn(*operands)
    made = made if isinstance(made, tuple) else (made,)
    return [one.handle.data.astype(part.dtype) for one, part in zip(made, left, strict=True)]
