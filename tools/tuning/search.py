"""The tuner's search: which points to measure next, given the cost model's times and what was measured so far.

The model comes first: it ranks every point for nothing, and only the best of them are looked at. Its error is then learnt from the
measurements: the logarithm of measured over modelled time is a Gaussian process over the points' numbers (in powers of two), whose mean
is the average error, so that a model that is wrong by a constant factor is not wrong at all. A wave takes the points with the lowest
optimistic time, each as if those before it had come out as expected; one place of a wave is drawn from all that the model does not rule
out, so that its blind spots are found. The same points, tells and seed give the same asks.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

Vector = tuple[float, ...]

KEPT = 256
"""Points looked at beyond those the caller insists on: the model's best."""
LENGTH = 1.5
"""Powers of two over which the model's error stays alike; an assumption, as the three below."""
SPREAD = 0.25
"""Standard deviation of the logarithm of the model's error from point to point."""
NOISE = 0.02
"""The same of a measurement."""
OPTIMISM = 0.7
"""Standard deviations below its expectation at which a point is judged."""
FAILED = 1.0
"""Logarithm of the factor by which a point that failed counts as slower than the model says."""
EXPLORED = 4
"""The drawn place of a wave comes from this many times the measured points, the model's next best ones."""


@dataclass(frozen=True)
class Point:
    """One setting of every number that is tuned."""

    name: str
    vector: Vector
    """Powers of two of its numbers, one place a number, the same places in every point."""
    predicted_us: float


class Search:
    """Asks for points in waves, and is told their times."""

    def __init__(self, points: Sequence[Point], first: Sequence[str] = (), seed: int = 0) -> None:
        """Search among `points`; those named in `first` are asked for before any other. What the model says cannot run is left out."""
        ranked = sorted((point for point in points if point.predicted_us < math.inf), key=lambda point: (point.predicted_us, point.name))
        names = set(first)
        self._points = {point.name: point for point in [*ranked[:KEPT], *(p for p in ranked[KEPT:] if p.name in names)]}
        self._first = [name for name in dict.fromkeys(first) if name in self._points]
        self._order = list(self._points)
        self._told: dict[str, float] = {}
        self._seed = seed

    def ask(self, count: int) -> tuple[str, ...]:
        """Name at most `count` points not measured yet, the most promising first; none where all are measured."""
        asked = [name for name in self._first if name not in self._told][:count]
        fit = self._fit(asked)
        if len(asked) < count and self._told and (drawn := self._drawn(asked)):
            asked.append(drawn)
            fit = self._fit(asked)
        while len(asked) < count:
            left = [name for name in self._order if name not in self._told and name not in asked]
            if not left:
                break
            asked.append(min(left, key=lambda name: (fit.optimistic(self._points[name]), name)))
            fit = self._fit(asked)
        return tuple(asked)

    def tell(self, name: str, time_us: float | None) -> None:
        """Say how long a point took; None where it failed."""
        self._told[name] = math.inf if time_us is None else time_us

    @property
    def best(self) -> str | None:
        """The fastest point measured so far."""
        timed = [name for name, us in self._told.items() if us < math.inf]
        return min(timed, key=lambda name: (self._told[name], name)) if timed else None

    def _drawn(self, asked: list[str]) -> str:
        taken = len(self._told) + len(asked)
        pool = [name for name in self._order[: EXPLORED * (taken + 1)] if name not in self._told and name not in asked]
        return random.Random(f"{self._seed}/{taken}").choice(pool) if pool else ""  # noqa: S311 - a search, no secret

    def _fit(self, pending: Sequence[str]) -> _Process:
        """Learn the model's error; a pending point counts as measured where the process expects it."""
        known = {name: _error(self._points[name], us) for name, us in self._told.items() if name in self._points}
        process = _Process([self._points[name].vector for name in known], list(known.values()))
        if not pending:
            return process
        believed = [process.expected(self._points[name].vector)[0] for name in pending]
        return _Process([*process.places, *(self._points[name].vector for name in pending)], [*process.values, *believed], process.mean)


def _error(point: Point, time_us: float) -> float:
    return FAILED if time_us == math.inf else math.log(time_us / point.predicted_us)


class _Process:
    """A Gaussian process with a constant mean."""

    def __init__(self, places: list[Vector], values: list[float], mean: float | None = None) -> None:
        self.places, self.values = places, values
        ordered = sorted(values)
        self.mean = mean if mean is not None else ordered[len(ordered) // 2] if ordered else 0.0
        self._root = _cholesky([[_alike(a, b) + (NOISE**2 if i == j else 0.0) for j, b in enumerate(places)] for i, a in enumerate(places)])
        self._weights = _forward(self._root, [value - self.mean for value in values])

    def expected(self, place: Vector) -> tuple[float, float]:
        """Mean and standard deviation at a place."""
        solved = _forward(self._root, [_alike(place, other) for other in self.places])
        mean = self.mean + sum(a * b for a, b in zip(solved, self._weights, strict=True))
        return mean, math.sqrt(max(0.0, SPREAD**2 - sum(a * a for a in solved)))

    def optimistic(self, point: Point) -> float:
        """Logarithm of the time that a point may reach."""
        mean, deviation = self.expected(point.vector)
        return math.log(point.predicted_us) + mean - OPTIMISM * deviation


def _alike(one: Vector, two: Vector) -> float:
    return SPREAD**2 * math.exp(-sum((a - b) ** 2 for a, b in zip(one, two, strict=True)) / (2 * LENGTH**2))


def _cholesky(matrix: list[list[float]]) -> list[list[float]]:
    root: list[list[float]] = []
    for i, row in enumerate(matrix):
        new: list[float] = []
        for j in range(i):
            new.append((row[j] - sum(a * b for a, b in zip(new, root[j], strict=False))) / root[j][j])
        new.append(math.sqrt(max(row[i] - sum(a * a for a in new), 1e-12)))
        root.append(new)
    return root


def _forward(root: list[list[float]], values: list[float]) -> list[float]:
    """Solve root · x = values."""
    found: list[float] = []
    for row, value in zip(root, values, strict=True):
        found.append((value - sum(a * b for a, b in zip(row, found, strict=False))) / row[-1])
    return found
