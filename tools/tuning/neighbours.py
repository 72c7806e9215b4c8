"""The points around a written source: other values of its numbers, the nearest first, where no cost model knows the kernel."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence

from tools.tuning.search import Point
from tools.tuning.written import Number

REACH = 3
"""Steps from the source as it is, over all numbers together."""
MOST = 256
"""Points: with more numbers the farthest are left out."""
FARTHER = 0.01
"""Share of the time by which each step counts as slower before anything is known: of equals the nearest is tried first."""


def neighbours(numbers: Sequence[Number], own_us: float) -> tuple[Point, ...]:
    """List the points within reach, the source as it is first; `own_us` is what that takes."""
    found: dict[str, Point] = {}
    for steps in range(REACH + 1):
        for values in _at(numbers, steps):
            if len(found) == MOST:
                return tuple(found.values())
            name = point_name(values)
            vector = tuple(math.log2(values[number.name]) for number in numbers)
            found[name] = Point(name, vector, own_us * (1 + FARTHER * steps))
    return tuple(found.values())


def point_name(values: Mapping[str, int]) -> str:
    """Name a point by its values."""
    return json.dumps(values, sort_keys=True)


def values_of(point: str) -> dict[str, int]:
    """Read a point's values out of its name."""
    values: dict[str, int] = json.loads(point)
    return values


def _at(numbers: Sequence[Number], steps: int) -> Iterator[dict[str, int]]:
    """Values that lie this many steps from the source's own, one number changed before several."""
    own = {number.name: number.value for number in numbers}
    for count in range(min(steps, len(numbers)) + 1):
        for chosen in itertools.combinations(numbers, count):
            for taken in _shares(steps, count):
                for signs in itertools.product((1, -1), repeat=count):
                    moved = [_moved(number, step * sign) for number, step, sign in zip(chosen, taken, signs, strict=True)]
                    if all(value is not None for value in moved):
                        yield own | {number.name: value for number, value in zip(chosen, moved, strict=True) if value is not None}


def _shares(steps: int, count: int) -> Iterator[tuple[int, ...]]:
    """Ways to share steps among numbers, at least one each."""
    if count == 0:
        yield from [()] * (steps == 0)
        return
    for first in range(1, steps - count + 2):
        yield from ((first, *rest) for rest in _shares(steps - first, count - 1))


def _moved(number: Number, steps: int) -> int | None:
    place = number.values.index(number.value) + steps
    return number.values[place] if 0 <= place < len(number.values) else None
