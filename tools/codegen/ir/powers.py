"""Numbers that are a power of a size, or of two sizes, or the side of a square or a cube that has as many elements."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

Sizes = tuple[int, ...]
"""One number in every trace."""

LEAST = 4
"""Factors that are written as powers: fewer are products."""

MOST = 12
"""Factors that are looked for."""


def power_forms(values: Sizes, facts: Sequence[tuple[str, Sizes]]) -> Iterator[str]:
    """Write `values` as a power of a size, or as one times a power of another size or times a number; `facts` with their texts.

    Three numbers show that this is no coincidence.
    """
    if len(set(values)) < 3 or min(values) < 1:
        return
    for text, sizes in facts:
        rest, times = values, 0
        while times < MOST and all(size and value % size == 0 for value, size in zip(rest, sizes, strict=True)):
            rest, times = tuple(value // size for value, size in zip(rest, sizes, strict=True)), times + 1
            if len(set(rest)) == 1 and times >= LEAST:
                yield f"{text} ** {times}" + (f" * {rest[0]}" if rest[0] > 1 else "")
            for other, more in facts if len(set(rest)) > 1 else ():
                power = _exponent(rest, more)
                if more != sizes and times + power >= LEAST and power:
                    yield f"{_power(text, times)} * {_power(other, power)}"


def root_forms(values: Sizes, facts: Sequence[tuple[str, Sizes]]) -> Iterator[str]:
    """Write `values` as the side of a square, or of a cube, whose elements a size counts, with a number of others or without."""
    if len(set(values)) < 3 or min(values) < 1:
        return
    for power, form in ((2, "math.isqrt({})"), (3, "round(({}) ** (1 / 3))")):
        wanted = [value**power for value in values]
        for text, sizes in facts:
            over = {size - value for value, size in zip(wanted, sizes, strict=True)}
            times = {Fraction(size, value) for value, size in zip(wanted, sizes, strict=True)}
            if len(over) == 1:
                added = over.pop()
                yield form.format(text if not added else f"{text} {'-' if added > 0 else '+'} {abs(added)}")
            elif len(times) == 1 and (parts := times.pop()).denominator == 1:
                yield form.format(f"{text} // {parts}")


def _exponent(values: Sizes, sizes: Sizes) -> int:
    """Find the power of `sizes` that `values` are in every trace; 0 where they are none."""
    value, size = max(zip(values, sizes, strict=True))
    power = round(math.log(value) / math.log(size)) if size > 1 else 0
    return power if 0 < power <= MOST and all(a == b**power for a, b in zip(values, sizes, strict=True)) else 0


def _power(text: str, times: int) -> str:
    return text if times == 1 else f"{text} ** {times}"
