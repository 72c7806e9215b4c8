"""Declared small sizes mixed with one another, for who learns numbers from sizes: of two that vary alike, no trace tells which it was.

Files declare few small sizes. Where a width is 12, then 32, and there are 2 points, then 4, a height of 6, then 8, is their quotient by
chance. At the width of the one and the points of the other it is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tools.errors import UserError
from tools.problems.constants import reachable, small_sizes
from tools.problems.variants import fits, with_sizes
from tools.records import Problem, ProblemForm
from tools.syntax import parsed


def mixed_variants(problem: Problem) -> tuple[Problem, ...]:
    """Give `problem` at mixtures of the first two sizes that its file declares; those that do not run alike are left out.

    There are none where the reference itself uses one of the sizes: such a constant is told by the sizes that it was declared with.
    """
    declared = None if problem.form is ProblemForm.EXPORTED else small_sizes(parsed(problem.source), problem.name)
    if not declared or len(declared) < 2 or set(declared[0]) & reachable(problem.source, [problem.entry]):
        return ()
    found = (_usable(problem, sizes) for sizes in mixtures(*declared[:2]))
    return tuple({variant.id: variant for variant in found if variant is not None}.values())


def mixtures(one: Mapping[str, int], two: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Yield sizes from both, so that any two constants come from different ones at least once."""
    keys = [key for key, size in one.items() if two.get(key, size) != size]
    for bit in range((len(keys) - 1).bit_length()):
        yield {**one, **{key: two[key] for place, key in enumerate(keys) if place >> bit & 1}}


def _usable(problem: Problem, sizes: dict[str, int]) -> Problem | None:
    try:
        variant = with_sizes(problem, sizes)
    except UserError:
        # sizes of different entries need not fit together
        return None
    return variant if fits(variant) and len(variant.work.operators) == len(problem.work.operators) else None
