"""Medians, quartiles and bootstrap intervals of measured times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tools.records import Sample

RESAMPLES = 2000
_SEED = 20210
_QUARTILES = 1.349
"""Distance of the quartiles of a normal distribution, in standard deviations."""


def sample(values_us: Sequence[float]) -> Sample:
    """Sum up times in microseconds: median, quartiles, count."""
    low, median, high = np.percentile(np.asarray(values_us, dtype=float), (25, 50, 75))
    return Sample(median_us=float(median), low_us=float(low), high_us=float(high), count=len(values_us))


def relative_noise(values_us: Sequence[float]) -> float:
    """Standard deviation of times over their median, as that of a normal distribution with their quartiles."""
    low, median, high = np.percentile(np.asarray(values_us, dtype=float), (25, 50, 75))
    return float((high - low) / _QUARTILES / median)


def speedup(baseline_us: Sequence[float], candidate_us: Sequence[float]) -> tuple[float, float, float]:
    """Ratio of medians, baseline over candidate, with its 95 % percentile-bootstrap interval; the same data give the same interval."""
    generator = np.random.default_rng(_SEED)
    over, under = (_resampled_medians(values, generator) for values in (baseline_us, candidate_us))
    low, high = np.percentile(over / under, (2.5, 97.5))
    return float(np.median(baseline_us) / np.median(candidate_us)), float(low), float(high)


def _resampled_medians(values: Sequence[float], generator: np.random.Generator) -> np.ndarray:
    data = np.asarray(values, dtype=float)
    picks = generator.integers(0, len(data), (RESAMPLES, len(data)))
    return np.asarray(np.median(data[picks], axis=1))
