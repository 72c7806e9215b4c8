"""Medians, quartiles and bootstrap intervals of measured times, and how many are enough, whatever a candidate does."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np

from tools.evaluation.supervisor.checking.call_plan import Stage
from tools.records import Sample

RESAMPLES = 2000
_SEED = 20210
_QUARTILES = 1.349
"""Distance of the quartiles of a normal distribution, in standard deviations."""
_BUDGET_US = {"search": 0.4e6, "confirm": 1.5e6}
"""Time on the device that one thing is timed for, as far as the bounds on repetitions allow."""
_REPETITIONS = {"search": (15, 60), "confirm": (40, 200)}
_CALL_OVERHEAD_US = 1500.0
"""Assumed cost of a call beside the kernel (messages, poisoning, clearing the L2); it only sets how many calls are made."""
_PRECISE = {"search": 0.005, "confirm": 0.003}
"""Relative standard error of a ratio of medians that is small enough: beyond the least number of calls no more are made than for that."""
NOISE_SEEN = 8
"""Calls of each baseline, at the least, that say something about its noise."""
LEAD_INS = 5
"""Measurements of what stands around the calls of a chain, of which the median counts."""
LOOKS = 2
"""Of them measured anew for each candidate, while it lives."""
HOLDS_US = 0.5
"""How far from the median of those before each new one may be: a sixth of what a short kernel may hide. Beyond it all are measured anew."""

JUST_S = 0.25
"""How old times of the baselines alone may be to stand before the next candidate: timings come in a row, and a check takes longer."""


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


def repetitions(stage: Stage, reference_us: float) -> int:
    """Fix the number of timed calls from the reference's time alone."""
    least, most = _REPETITIONS[stage]
    return max(least, min(most, int(_BUDGET_US[stage] / (reference_us + _CALL_OVERHEAD_US))))


def enough(stage: Stage, most: int, before: Mapping[str, Sequence[float]]) -> int:
    """Say how many of at most `most` timed calls make the ratio of two medians precise, by the baselines' noise `before` anything is timed.

    A median's standard error is 1.25 standard deviations by the root of their number; a ratio's is that of both medians together.
    """
    if not before or min(map(len, before.values())) < NOISE_SEEN:
        return most
    noise = max(relative_noise(times) for times in before.values())
    return max(min(most, _REPETITIONS[stage][0]), min(most, math.ceil(2 * (1.25 * noise / _PRECISE[stage]) ** 2)))


class LeadIns:
    """What stands around the calls of each kind of chain, as it was measured last: it counts as long as it still holds.

    What a candidate makes of it while it lives stands for no other candidate that finds it different.
    """

    def __init__(self) -> None:
        """Know none."""
        self._known: dict[Hashable, list[float]] = {}

    def median_us(self, kind: Hashable, measure: Callable[[], float]) -> float:
        """Give the median of the last lead-ins of a `kind`, each of which `measure` gives in microseconds."""
        known = self._known.get(kind, [])
        looks = [measure() for _ in range(LOOKS)]
        if len(known) < LEAD_INS or any(abs(one - float(np.median(known))) > HOLDS_US for one in looks):
            known = looks + [measure() for _ in range(LEAD_INS - LOOKS)]
        else:
            known = [*known, *looks][-LEAD_INS:]
        self._known[kind] = known
        return float(np.median(known))


class JustTaken:
    """Times of the baselines after a candidate's process had ended: where the next is timed at once they stand before it, too."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Know none."""
        self._clock = clock
        self._moment = -math.inf
        self._times: dict[str, list[float]] = {}

    def kept(self, times: dict[str, list[float]]) -> dict[str, list[float]]:
        """Keep times that were taken now, and give them back."""
        self._moment, self._times = self._clock(), times
        return times

    def of(self, names: Sequence[str]) -> dict[str, list[float]]:
        """Times of those baselines a moment ago; nothing where that is longer ago, or others were timed."""
        return self._times if self._clock() - self._moment < JUST_S and list(self._times) == list(names) else {}


def _resampled_medians(values: Sequence[float], generator: np.random.Generator) -> np.ndarray:
    data = np.asarray(values, dtype=float)
    picks = generator.integers(0, len(data), (RESAMPLES, len(data)))
    return np.asarray(np.median(data[picks], axis=1))
