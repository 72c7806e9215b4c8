"""References with long loops of Python, made short: which constant of the file says how long, and the same reference at a few steps.

A constant says how long a loop is where the number of operators grows with it, by the same amount for each. Nothing of it is traced here:
the reference is run without contents, at a few steps, once for each constant that may be meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tools.errors import UserError
from tools.records import Problem, ProblemForm

MANY = 64
"""Operators from which on a reference is looked at for a loop."""
LENGTHS = (5, 6, 8)
"""Lengths at which a loop is traced, with all other sizes as written; what is seen at three is known at all."""
OTHERS = (7, 9, 6, 5)
"""Lengths that its small variants have in their traces."""


@dataclass(frozen=True)
class Shortened:
    """A reference at few steps."""

    lengths: dict[str, int]
    """By constant, as written."""
    problems: tuple[Problem, ...]
    """At `LENGTHS`, then small variants."""


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
    full = [_at(problem, dict.fromkeys(lengths, length)) for length in LENGTHS]
    others = [_at(each, dict.fromkeys(lengths, length)) for each, length in zip(variants, OTHERS, strict=False)]
    if None in full:
        return None
    return Shortened(lengths, tuple(each for each in (*full, *others) if each is not None))


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
