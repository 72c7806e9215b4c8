"""Means, shares, intervals and areas over plain numbers; nothing here knows what a run is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

RESAMPLES = 2000
_SEED = 20261121
"""Fixed, so that the same rows give the same report."""

FAST = (1.0, 1.1, 1.5, 2.0, 4.0)
"""Values of p at which fast_p is tabulated."""


def finite(values: Sequence[float]) -> list[float]:
    """Leave out what was not timed."""
    return [value for value in values if math.isfinite(value)]


def geomean(values: Sequence[float]) -> float:
    """Geometric mean of positive numbers; NaN of none."""
    kept = finite(values)
    return math.exp(sum(map(math.log, kept)) / len(kept)) if kept else math.nan


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean; NaN of none."""
    kept = finite(values)
    return sum(kept) / len(kept) if kept else math.nan


def fast_share(speedups: Sequence[float], p: float, of: int) -> float:
    """KernelBench's fast_p: the share of all `of` problems whose delivered kernel is right and more than `p` times as fast."""
    return sum(value > p for value in finite(speedups)) / of if of else math.nan


def value_at(curve: Sequence[float], evaluations: int) -> float:
    """Best speed-up after so many evaluations, of a curve of best-so-far values; 1.0 before the first, the last one after the end."""
    if not curve or evaluations <= 0:
        return 1.0
    return curve[min(evaluations, len(curve)) - 1]


def gain_share(curves: Sequence[Sequence[float]], evaluations: int) -> float:
    """Share of all gain, in logarithms and summed over the curves, that was reached after so many evaluations; NaN where nothing gained."""
    whole = sum(math.log(curve[-1]) for curve in curves if curve)
    reached = sum(math.log(value_at(curve, evaluations)) for curve in curves)
    return reached / whole if whole > 0 else math.nan


def first_reaching(curve: Sequence[float], wanted: float) -> int | None:
    """Evaluations after which a curve has reached `wanted`; None where it never does."""
    return next((place for place, value in enumerate(curve, 1) if value >= wanted), None)


def interval(values: Sequence[float], statistic: Callable[[Sequence[float]], float] = mean) -> tuple[float, float] | None:
    """95 % percentile-bootstrap interval of a statistic over independent repetitions; None of fewer than two."""
    if len(values) < 2:
        return None
    generator = np.random.default_rng(_SEED)
    picks = generator.integers(0, len(values), (RESAMPLES, len(values)))
    drawn = np.asarray(values, dtype=float)[picks]
    found = drawn.mean(axis=1) if statistic is mean else np.asarray([statistic(list(row)) for row in drawn])
    low, high = np.percentile(found, (2.5, 97.5))
    return float(low), float(high)
