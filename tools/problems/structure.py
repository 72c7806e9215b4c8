"""Sizes that a file declares small although they say what runs, not only how large it is: how many layers, terms or levels there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tools.errors import UserError
from tools.problems.proposals import adjustable
from tools.problems.uneven_steps import steps_differ
from tools.records import Problem

LEAST = 8
"""Constants up to here that are the extent of nothing are no lengths of loops: so few steps are operators one after the other."""
MOST_WRITTEN = 600
"""Operators up to which steps that differ are all written out."""


def structure(problem: Problem, declared: Sequence[dict[str, int]], resized: Callable[[dict[str, int]], Problem]) -> frozenset[str]:
    """Name the constants among declared sizes with which the reference runs other operators than more or fewer of the same steps.

    A kernel has the operators of the problem as written; at a size that has others nothing could be generated.
    """
    whole = len(problem.work.operators)
    written = {**_written(problem), **problem.sizes}
    extents = {constant.key for constant in adjustable(problem).sizes}
    found = set()
    for key in dict.fromkeys(key for sizes in declared for key in sizes):
        value = written.get(key, 0)
        counts = {value: whole}
        # its size as written says nothing of it
        for sizes in (sizes for sizes in declared if sizes.get(key, value) != value):
            count = _count(resized, {key: sizes[key]}) or whole + _by_the_rest(resized, sizes, key)
            if count == whole:
                break
            counts |= {sizes[key]: count}
        else:
            if len(counts) == 2:
                # a line goes through any two
                more = max(size for size in counts if size != value) + 1
                more += more == value
                counts |= {more: count} if (count := _count(resized, {key: more})) else {}
                if counts.get(more) == whole:
                    # one size alone is special, as that of a single row is
                    continue
            if len(counts) > 1 and not (
                _is_even(counts) and (key in extents or value > LEAST) and not _differ(problem, resized, key, counts)
            ):
                found.add(key)
    return frozenset(found)


def _differ(problem: Problem, resized: Callable[[dict[str, int]], Problem], key: str, counts: dict[int, int]) -> bool:
    """Whether a loop has steps that differ, or read parameters of their own, and so few that they can be written out."""
    (value, whole), (other, count), *_ = counts.items()
    if whole > MOST_WRITTEN:
        return False
    if _parameters(resized, {key: other}, problem) != len(problem.abi.parameters):
        return True
    return steps_differ(problem, key, value, abs(whole - count) // abs(value - other))


def _parameters(resized: Callable[[dict[str, int]], Problem], sizes: dict[str, int], problem: Problem) -> int:
    """Count parameters at changed sizes; as many as there are where these do not run by themselves."""
    try:
        return len(resized(sizes).abi.parameters)
    except UserError:
        return len(problem.abi.parameters)


def _is_even(counts: dict[int, int]) -> bool:
    """Whether operators grow in proportion to a size, as a loop's do."""
    (first, start), *others = counts.items()
    slopes = {((start - count), (first - size)) for size, count in others}
    one, by = next(iter(slopes))
    return all(rise * by == one * run for rise, run in slopes)


def _by_the_rest(resized: Callable[[dict[str, int]], Problem], sizes: dict[str, int], key: str) -> int:
    """Operators that a size adds where it does not run alone, by what the others run without it."""
    without = _count(resized, {other: size for other, size in sizes.items() if other != key})
    return _count(resized, sizes) - without if without else 0


def _count(resized: Callable[[dict[str, int]], Problem], sizes: dict[str, int]) -> int:
    """Count operators at changed sizes; 0 where these do not run by themselves."""
    try:
        return len(resized(sizes).work.operators)
    except UserError:
        return 0


def _written(problem: Problem) -> dict[str, int]:
    from tools.problems.constants import constants
    from tools.problems.source import Recognised
    from tools.syntax import parsed

    return {constant.key: constant.value for constant in constants(parsed(problem.source), Recognised(problem.form, problem.entry).makers)}
