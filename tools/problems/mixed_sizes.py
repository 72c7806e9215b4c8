"""Declared small sizes mixed with one another, for who learns numbers from sizes: of two that vary alike, no trace tells which it was.

Files declare few small sizes. Where a width is 12, then 32, and there are 2 points, then 4, a height of 6, then 8, is their quotient by
chance. At the width of the one and the points of the other it is not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from tools.errors import UserError
from tools.problems.constants import reachable, small_sizes
from tools.problems.elsewhere import Elsewhere
from tools.problems.variants import fits, small_variants, with_sizes
from tools.records import Problem, ProblemForm
from tools.syntax import parsed

MIXED = Elsewhere()
"""Mixtures that another process made."""


def mixed_variants(problem: Problem) -> tuple[Problem, ...]:
    """Give `problem` at mixtures of the first two sizes that its file declares; those that do not run alike are left out.

    There are none where the reference itself uses one of the sizes: such a constant is told by the sizes that it was declared with.
    """
    if (known := MIXED.of(problem)) is not None:
        return known
    declared = None if problem.form is ProblemForm.EXPORTED else small_sizes(parsed(problem.source), problem.name)
    if not declared or len(declared) < 2 or set(declared[0]) & reachable(problem.source, [problem.entry]):
        return ()
    variants = small_variants(problem)
    if len(variants) < 2:
        return ()
    # what says how many layers there are is not among these
    one, two = (variant.sizes for variant in variants[:2])
    alike = (problem, *variants[:2])
    found = [_usable(alike, sizes) for sizes in mixtures(one, two)]
    if None in found:
        found += [_usable(alike, sizes) for sizes in mixtures(one, two, _tied(alike, one, two))]
    return tuple({variant.id: variant for variant in found if variant is not None}.values())


def mixtures(one: Mapping[str, int], two: Mapping[str, int], tied: Collection[str] = ()) -> Iterator[dict[str, int]]:
    """Yield sizes from both, so that any two constants come from different ones at least once; those that are `tied` stay together."""
    keys = [key for key, size in one.items() if two.get(key, size) != size]
    groups = [[key] for key in keys if key not in tied] + [[key for key in keys if key in tied]] * bool(tied)
    for bit in range((len(groups) - 1).bit_length()):
        yield {**one, **{key: two[key] for place, group in enumerate(groups) for key in group if place >> bit & 1}}


def _tied(alike: Sequence[Problem], one: Mapping[str, int], two: Mapping[str, int]) -> list[str]:
    """List the constants that no mixture takes from the second entry without others, as a picture's side and that of its windows."""
    changed = {key: size for key, size in two.items() if key in one and one[key] != size}
    return [key for key, size in changed.items() if _usable(alike, {**one, key: size}) is None]


def _usable(alike: Sequence[Problem], sizes: dict[str, int]) -> Problem | None:
    """Make a mixture; None where it runs other operators than all of `alike`: of one row some copies are none, and so they are in these."""
    try:
        variant = with_sizes(alike[0], sizes)
    except UserError:
        # sizes of different entries need not fit together
        return None
    counts = {len(each.work.operators) for each in alike}
    return variant if fits(variant) and len(variant.work.operators) in counts and _ranks(variant) == _ranks(alike[0]) else None


def _ranks(problem: Problem) -> list[tuple[str, int]]:
    return [(spec.name, len(spec.shape)) for spec in (*problem.abi.inputs, *problem.abi.parameters)]
