"""Numbers that are a share of a size, rounded down or up: `n // 10`, `int(n * 0.85)`, and what these leave; sizes filled up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product

Sizes = tuple[int, ...]
"""One number in every trace."""

MOST_PARTS = 100
"""Denominator of a share."""

FILLED = 16
"""Multiple to which rows of ours are filled up: Triton's compiler asks it of a number before it trusts it."""

MULTIPLES = tuple(2**power for power in range(1, 13))
"""Those to which references fill up."""

LEAST_TRACES = 5
"""Traces from which on a sum of three sizes is no coincidence."""

MOST_PADDED = 8
"""Parts of a window that are put beside what it goes over."""

EVIDENCE = 256
"""One in so many numbers may be filled up like this by chance."""


def may_be_nothing(values: Sizes, sizes: Sizes) -> bool:
    """Whether `values` are a size less a number, or a part of it rounded down: none may be left of another size, which is not 0."""
    both = list(zip(values, sizes, strict=True))
    less, parts = {size - value for value, size in both}, sizes[0] // values[0] if values[0] else 0
    if len(less) == 1:
        return less.pop() > 0
    return parts > 1 and any(size % parts for size in sizes) and all(value == size // parts for value, size in both)


def share_forms(values: Sizes, sizes: Sizes, text: str) -> Iterator[str]:
    """Write `values` as a share of the size that `text` reads, in every trace, or as what such a share leaves.

    Few numbers have a share in common by chance: of the shares with so many parts there must be far fewer than of such numbers.
    """
    if len(set(sizes)) < 3 or len(set(values)) < 3:
        return
    evidence = math.prod(set(sizes)) // 100
    left = tuple(size - value for size, value in zip(sizes, values, strict=True))
    wholes: list[str] = []
    shares: list[str] = []
    for up in (False, True):
        for wanted, form in ((values, "{}"), (left, f"{text} - ({{}})")):
            share = _simplest(wanted, sizes, up)
            if share is None or share.denominator**2 > evidence:
                continue
            if share.numerator == 1:
                parts = share.denominator
                wholes.append(form.format(f"-(-{text} // {parts})" if up else f"{text} // {parts}"))
            elif _rounds(float(share), sizes, wanted, up):
                times = repr(float(share))
                shares.append(form.format(f"int(-(-{text} * {times} // 1))" if up else f"int({text} * {times})"))
    yield from (*wholes, *shares)


def filled_forms(values: Sizes, sizes: Sizes, text: str, multiples: Sequence[int]) -> Iterator[str]:
    """Write `values` as a size that is filled up to one of `multiples`, as what fills it up, or as how many blocks that makes."""
    for multiple in multiples:
        if multiple ** len(set(sizes)) < EVIDENCE:
            continue
        blocks = tuple(-(-size // multiple) for size in sizes)
        if values == tuple(block * multiple for block in blocks):
            yield f"-(-{text} // {multiple}) * {multiple}"
        if values == tuple(block * multiple - size for block, size in zip(blocks, sizes, strict=True)):
            yield f"-{text} % {multiple}"
        if values == blocks and len(set(values)) > 1:
            yield f"-(-{text} // {multiple})"


def _rounds(share: float, sizes: Sizes, values: Sizes, up: bool) -> bool:
    """Whether a share that is written as a float, as whoever wants one writes it, gives the values, too."""
    return all((math.ceil if up else math.floor)(size * share) == value for size, value in zip(sizes, values, strict=True))


def _simplest(values: Sizes, sizes: Sizes, up: bool) -> Fraction | None:
    """Find the share with the least denominator whose products with `sizes` are rounded to `values`; None where there is none."""
    low, high = Fraction(0), Fraction(2)
    for value, size in zip(values, sizes, strict=True):
        if not 0 <= value <= size or not size:
            return None
        # rounded down it is at least this and less than one more; rounded up the other way about
        low, high = max(low, Fraction(value - up, size)), min(high, Fraction(value + 1 - up, size))
    if low >= high:
        return None
    # in whole numbers: this is asked some thousand times for an operator
    for parts in range(2, MOST_PARTS + 1):
        whole = low.numerator * parts // low.denominator + 1 if up else -(-low.numerator * parts // low.denominator)
        above = whole * high.denominator - high.numerator * parts
        if 0 < whole < parts and (above <= 0 if up else above < 0):
            return Fraction(whole, parts)
    return None


def rest_forms(values: Sizes, sizes: Sequence[tuple[str, Sizes]]) -> Iterator[str]:
    """Write what two sizes have together less a third, as a part is that two others leave; `sizes` with their texts."""
    if len(values) < LEAST_TRACES or len(set(values)) < 3:
        return
    texts = {each: text for text, each in reversed(sizes)}
    for (one, some), (two, more) in combinations_with_replacement(sizes, 2):
        less = texts.get(tuple(a + b - v for v, a, b in zip(values, some, more, strict=True)))
        if less is not None:
            yield f"{one} + {two} - {less}"


def padded_forms(values: Sizes, facts: Sequence[tuple[str, Sizes]]) -> Iterator[str]:
    """Write `values` as a size with another one, or a part of it, added or left out, and up to two more: as half a window goes beside it.

    So many positions has a whole window, too.
    """
    if len(set(values)) < LEAST_TRACES:
        return
    for ((text, sizes), (other, window)), parts in product(permutations(facts, 2), range(1, MOST_PADDED + 1)):
        part = [size // parts for size in window]
        for sign, by in (("+", 1), ("-", -1)):
            more = {value - size - by * each for value, size, each in zip(values, sizes, part, strict=True)}
            if len(more) == 1 and len(set(part)) > 2 and abs(rest := more.pop()) <= 2:
                share = f"{other} // {parts}" if parts > 1 else other
                yield f"{text} {sign} {share}" + (f" {'+' if rest > 0 else '-'} {abs(rest)}" if rest else "")
