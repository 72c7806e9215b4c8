"""Knows the denominators of which a reference's rounding does not determine the sign: what is divided by them may be any number.

Rounded to a grid they step over zero: `squares - mean * mean + 1e-3` of large numbers is a multiple of their last place and a little more.
Whoever rounds once less meets what lies between, and of many elements one or another very near to zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

DENOMINATORS = {"div": 1, "reciprocal": 0, "addcdiv": 2}
"""Place of the denominator by operator."""
DIGITS = 24
"""By so many halvings at most one comes nearer to zero: a float32 that is what two others leave of each other has no more."""
MOST = 1 << 26
"""Elements that are watched."""


class Poles:
    """The denominators of runs of one reference, in the order in which it divides by them."""

    def __init__(self) -> None:
        """Begin with no run."""
        self._spans: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._watched = 0
        self._at = 0

    def begin(self) -> None:
        """Begin the next run."""
        self._at = 0

    def nearer(self, name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Give an operator's arguments; a denominator comes nearer to zero by chance where runs have seen both signs of it."""
        import torch

        place = DENOMINATORS.get(name)
        if place is None or place >= len(args) or not isinstance(args[place], torch.Tensor) or not args[place].is_floating_point():
            return args
        value, at = args[place], self._at
        self._at += 1
        if at == len(self._spans):
            self._watched += value.numel()
            # of what is too much to keep, one number that is compared with nothing
            kept = value.clone() if self._watched <= MOST else value.new_empty(0)
            self._spans.append((kept, kept))
            return args
        least, largest = self._spans[at]
        if least.shape != value.shape:
            return args
        self._spans[at] = least, largest = least.minimum(value), largest.maximum(value)
        moved = value * torch.exp2(torch.rand_like(value) * -DIGITS)
        return (*args[:place], torch.where((least < 0) & (largest > 0), moved, value), *args[place + 1 :])
