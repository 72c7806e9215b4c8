"""How often a candidate and its baselines are called: by the reference's time and the baselines' noise, never by what a candidate does."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tools.evaluation.supervisor.call_plan import Stage
from tools.evaluation.supervisor.statistics import relative_noise

_BUDGET_US = {"search": 0.4e6, "confirm": 1.5e6}
"""Time on the device that one thing is timed for, as far as the bounds on repetitions allow."""
_REPETITIONS = {"search": (15, 60), "confirm": (40, 200)}
_CALL_OVERHEAD_US = 1500.0
"""Assumed cost of a call beside the kernel (messages, poisoning, clearing the L2); it only sets how many calls are made."""
_PRECISE = {"search": 0.005, "confirm": 0.003}
"""Relative standard error of a ratio of medians that is small enough: beyond the least number of calls no more are made than for that."""
NOISE_SEEN = 8
"""Calls of each baseline, at the least, that say something about its noise."""


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
