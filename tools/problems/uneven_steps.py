"""Loops whose steps differ by their position: step 3 takes what is three shifts from the edge, and makes less of it than step 2.

No kernel has such a step once and repeats it: each is written out, and a kernel has as many of them as the problem as written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tools.errors import UserError
from tools.problems.opening import blueprint_of
from tools.records import Problem

FEWEST, MOST = 8, 16
"""Steps at which a loop is looked at: so many that few operators repeat as often by themselves, and no more than tell."""
SPECIAL = 2
"""Steps at either end of a loop that may be others."""

Look = tuple[str, tuple[tuple[int, ...], ...]]
"""An operator, and the shapes of what it reads and makes."""


def steps_differ(problem: Problem, key: str, value: int, operators: int) -> bool:
    """Whether the `operators` of each step of a loop that is as long as a constant says have other shapes at each; False where unknown."""
    steps = max(FEWEST, min(value, MOST))
    looks = _looks(problem, {key: steps})
    names = [name for name, _ in looks]
    for period in range(1, operators + 1):
        for first, end in _repeated(names, period):
            if abs((end - first) // period - steps) <= SPECIAL and not _are_alike(looks, range(first, end), period):
                return True
    return False


def _repeated(names: Sequence[str], period: int) -> list[tuple[int, int]]:
    """List the ranges of operators in which each is followed by the same one a period later."""
    found, first = [], 0
    for place in range(len(names) - period + 1):
        if place == len(names) - period or names[place] != names[place + period]:
            if place > first:
                found.append((first, place + period))
            first = place + 1
    return found


def _are_alike(looks: Sequence[Look], places: range, period: int) -> bool:
    """Whether the steps in the middle have the same shapes."""
    middle = places[SPECIAL * period : len(places) - SPECIAL * period]
    return all(looks[place] == looks[place + period] for place in middle[:-period])


def _looks(problem: Problem, sizes: dict[str, int]) -> Sequence[Look]:
    from tools.problems.analysis import analyse

    merged = {**problem.sizes, **sizes}
    try:
        facts = analyse(blueprint_of(problem.form, problem.entry, problem.source, merged, problem.name), confirm=False)
    except UserError:
        # too few, or too many for the other sizes
        return ()
    return tuple(zip(facts.work.operators, facts.shapes, strict=True))


def grown(sizes: dict[str, int], more: int, times: int) -> list[dict[str, int]]:
    """Give sizes of which one is so much larger, or so many times as large, that more steps may find room in it."""
    ways: tuple[Callable[[int], int], ...] = (lambda size: size + more, lambda size: size * times)
    return [{**sizes, key: way(size)} for way in ways for key, size in sizes.items()]
