"""Numbers that follow from a size: multiples of it, or one over it, with something added; its powers, and the side of a square."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

MOST_PARTS = 99
"""Of a size that is multiplied by a fraction which has no end as a decimal, as two thirds of it are."""

FUNCTIONS: dict[str, tuple[Callable[[int], float], Callable[[float], float]]] = {
    "{}": (float, lambda v: v),
    "1.0 / {}": (lambda n: 1.0 / n, lambda v: 1.0 / v),
    "{} ** 0.5": (lambda n: n**0.5, lambda v: v * v),
    "{} ** -0.5": (lambda n: n**-0.5, lambda v: 1.0 / (v * v)),
    # no size has a larger logarithm
    "math.log({})": (math.log, lambda v: math.exp(min(v, 64.0))),
    "{} ** 0.25": (lambda n: n**0.25, lambda v: v**4),
    "{} ** -0.25": (lambda n: n**-0.25, lambda v: v**-4),
    "{} ** 1.5": (lambda n: n**1.5, lambda v: v ** (2 / 3)),
    "{} ** -1.5": (lambda n: n**-1.5, lambda v: v ** (-2 / 3)),
}
"""Functions of a size with their inverses."""

Sizes = tuple[int, ...]
"""One number in every trace."""

LEAST_FACTORS = 4
"""Factors that are written as powers: fewer are products."""

MOST_FACTORS = 12
"""Factors that are looked for."""


def line_forms(values: Sequence[float], sizes: Sequence[int], text: str) -> Iterator[str]:
    """Write numbers as a multiple of a size, with something added where three sizes show that, or as what is left of a number by these."""
    for form, wanted in (("{}", values), ("1.0 / ({})", [1.0 / value if value else math.nan for value in values])):
        first, second = sizes[0], next((size for size in sizes if size != sizes[0]), sizes[0])
        if second == first or not all(map(math.isfinite, wanted)):
            continue
        exact = (wanted[sizes.index(second)] - wanted[0]) / (second - first)
        slope, part = _short(exact), Fraction(exact).limit_denominator(MOST_PARTS)
        for times, scaled in ((slope, f"{slope!r} * {text}"), (float(part), f"{part.numerator} * {text} / {part.denominator}")):
            start = _short(wanted[0] - times * first) if len(set(sizes)) > 2 else 0.0
            if is_close(wanted, [times * size + start for size in sizes]):
                yield form.format(scaled + (f" + {start!r}" if start else ""))


def inverse_forms(values: Sequence[float], sizes: Sequence[int], text: str) -> Iterator[str]:
    """Write numbers as a number over a size with something added, as the first of so many places between -1 and 1."""
    if len(set(sizes)) < 3 or not all(map(math.isfinite, values)) or not all(sizes):
        return
    first, second = sizes[0], next(size for size in sizes if size != sizes[0])
    slope = _short((values[sizes.index(second)] - values[0]) / (1.0 / second - 1.0 / first))
    start = _short(values[0] - slope / first)
    if slope and is_close(values, [slope / size + start for size in sizes]):
        yield f"{slope!r} / {text} + {start!r}"


def sizes_behind(values: Sequence[float], text: str) -> tuple[int, ...] | None:
    """Find the whole numbers of which one of the functions gives `values`; none where there are none."""
    function, inverse = FUNCTIONS[text]
    if not all(math.isfinite(value) and value > 0 for value in values):
        return None
    found = tuple(round(inverse(value)) for value in values)
    return found if all(found) and is_close(values, [function(n) for n in found]) else None


def is_close(left: Sequence[float], right: Sequence[float]) -> bool:
    """Whether numbers are the same but for rounding."""
    return all(math.isclose(a, b, rel_tol=1e-12) for a, b in zip(left, right, strict=True))


def _short(number: float) -> float:
    """Round off what a difference of two numbers leaves."""
    return float(f"{number:.12g}")


def power_forms(values: Sizes, facts: Sequence[tuple[str, Sizes]]) -> Iterator[str]:
    """Write `values` as a power of a size, or as one times a power of another size or times a number; `facts` with their texts.

    Three numbers show that this is no coincidence.
    """
    if len(set(values)) < 3 or min(values) < 1:
        return
    for text, sizes in facts:
        rest, times = values, 0
        while times < MOST_FACTORS and all(size and value % size == 0 for value, size in zip(rest, sizes, strict=True)):
            rest, times = tuple(value // size for value, size in zip(rest, sizes, strict=True)), times + 1
            if len(set(rest)) == 1 and times >= LEAST_FACTORS:
                yield f"{text} ** {times}" + (f" * {rest[0]}" if rest[0] > 1 else "")
            for other, more in facts if len(set(rest)) > 1 else ():
                power = _exponent(rest, more)
                if more != sizes and times + power >= LEAST_FACTORS and power:
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
    return power if 0 < power <= MOST_FACTORS and all(a == b**power for a, b in zip(values, sizes, strict=True)) else 0


def _power(text: str, times: int) -> str:
    return text if times == 1 else f"{text} ** {times}"
