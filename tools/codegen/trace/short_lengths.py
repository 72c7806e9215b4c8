"""References with long loops of Python, made short: which constant of the file says how long, and the same reference at a few steps.

A constant says how long a loop is where the number of operators grows with it, by the same amount for each. Nothing of it is traced here:
the reference is run without contents, at a few steps, once for each constant that may be meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from tools.errors import UserError
from tools.records import Problem, ProblemForm

MANY = 64
"""Operators from which on a reference is looked at for a loop."""
LENGTHS = (5, 6, 8)
"""Lengths at which a loop is traced, with all other sizes as written; what is seen at three is known at all."""
OTHERS = (7, 9, 6, 5)
"""Lengths that its small variants have in their traces."""
FURTHER = 32
"""Steps more, where so few are no measure: of a slice of the first twenty, eight steps show all of what it is taken from."""


@dataclass(frozen=True)
class Shortened:
    """A reference at few steps."""

    lengths: dict[str, int]
    """By constant, as written."""
    at: tuple[int, ...]
    """Lengths at which the reference is traced: `LENGTHS`, or as many further ones."""
    problems: tuple[Problem, ...]
    """At those lengths, then small variants."""
    own: dict[str, tuple[int | None, ...]]
    """By constant, what it is in the file at the sizes of each of these problems; None where the file has no such sizes."""


def shortened(problem: Problem, variants: Sequence[Problem]) -> Shortened | None:
    """Make a reference short; None where it has no long loop, or no constant says how long that is."""
    counts = {len(each.work.operators) for each in (problem, *variants)}
    if problem.form is ProblemForm.EXPORTED or (max(counts) < MANY and len(counts) == 1):
        return None
    lengths: dict[str, int] = {}
    for key, value in _constants(problem):
        if _counts(problem, {**dict.fromkeys(lengths, LENGTHS[0])}, key, value):
            lengths[key] = value
    if not lengths:
        return None
    for more in (0, FURTHER):
        at = tuple(length + more for length in LENGTHS)
        full = [_at(problem, dict.fromkeys(lengths, length)) for length in at]
        if None in full or max(at) >= min(lengths.values()):
            return None
        if _tells(problem, lengths, at):
            others = [(each, _at(each, dict.fromkeys(lengths, length))) for each, length in zip(variants, OTHERS, strict=False)]
            there = [(each, short) for each, short in others if short is not None]
            own = {key: (*[None] * len(at), *(each.sizes.get(key, length) for each, _ in there)) for key, length in lengths.items()}
            return Shortened(lengths, at, (*filter(None, full), *(short for _, short in there)), own)
    return None


def _tells(problem: Problem, lengths: Mapping[str, int], at: Sequence[int]) -> bool:
    """Whether the elements that operators touch and move at few steps tell how many they are at full length: they grow as a polynomial."""
    if len(whole := set(lengths.values())) > 1:
        return True
    points = range(at[0], at[-1] + 1)
    found = [_at(problem, dict.fromkeys(lengths, length)) for length in points]
    if any(each is None for each in found):
        return True
    works = [each.work for each in found if each is not None]
    told = (
        (problem.work.pointwise_flops, [work.pointwise_flops for work in works]),
        (problem.work.eager_bytes, [work.eager_bytes for work in works]),
    )
    return all(_carried_on(points, values, max(whole)) == actual for actual, values in told)


def _carried_on(points: Sequence[int], values: Sequence[int], to: int) -> Fraction:
    """Carry numbers on by the polynomial through all of them (Lagrange's form)."""
    total = Fraction(0)
    for one, value in zip(points, values, strict=True):
        others = [other for other in points if other != one]
        total += value * Fraction(prod(to - other for other in others), prod(one - other for other in others))
    return total


def _constants(problem: Problem) -> Iterator[tuple[str, int]]:
    """Yield the constants that may say how long a loop is, the largest first."""
    from tools.problems.constants import constants, override
    from tools.problems.source import Recognised
    from tools.syntax import parsed

    makers = Recognised(problem.form, problem.entry).makers
    source = override(problem.source, problem.sizes, makers, problem.name)
    found = [(each.key, each.value) for each in constants(parsed(source), makers)]
    most = len(problem.work.operators)
    yield from sorted((pair for pair in found if LENGTHS[-1] < pair[1] <= most), key=lambda pair: -pair[1])


def _counts(problem: Problem, others: dict[str, int], key: str, value: int) -> bool:
    """Whether the number of operators grows with a constant, and no otherwise at its value as written."""
    one = _at(problem, {**others, key: LENGTHS[0]})
    # most constants are no lengths: without them the reference has no fewer operators
    if one is None or (not others and len(one.work.operators) >= len(problem.work.operators)):
        return False
    two = _at(problem, {**others, key: LENGTHS[1]})
    if two is None:
        return False
    few, more = len(one.work.operators), len(two.work.operators)
    by, rest = divmod(more - few, LENGTHS[1] - LENGTHS[0])
    if by <= 0 or rest:
        return False
    return bool(others) or len(problem.work.operators) == few + by * (value - LENGTHS[0])


def _at(problem: Problem, sizes: dict[str, int]) -> Problem | None:
    from tools.problems.variants import with_sizes

    try:
        return with_sizes(problem, sizes)
    except UserError:
        return None
