"""Whether a measured time can be believed: its tier, the agreement of the clocks, and what no device can do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tools.profiling.roofline import impossible_us
from tools.records import HardwareSheet, Problem, Tier

AGREEMENT = 0.05
"""The runner's own events may be this much shorter than the supervisor's bracket for the figure to count as bracketed."""

FLOOR_MARGIN = 0.95
"""A time below this share of the least possible one is impossible; the rest is for the datasheet's rounding."""


def tier(event_us: Sequence[float], bracket_us: Sequence[float]) -> Tier:
    """Bracketed where the trusted clock around [inputs revealed, outputs collected] confirms the events, else in-process."""
    confirmed = bool(bracket_us) and float(np.median(event_us)) >= (1 - AGREEMENT) * float(np.median(bracket_us))
    return Tier.BRACKETED if confirmed else Tier.IN_PROCESS


def unexplained_us(event_us: Sequence[float], answer_us: Sequence[float], overhead_us: Sequence[float]) -> float:
    """How much longer the runner took to answer than its events and a calibrated overhead explain; 0 where they explain it.

    `overhead_us` is the same difference for trusted code that was called in the same way. Allowed are twice its upper quartile,
    half of the candidate's own time, and 300 µs of jitter between processes: only work that the events do not see exceeds that.
    """
    gap = float(np.median(np.asarray(answer_us) - np.asarray(event_us)))
    allowed = 2 * float(np.percentile(overhead_us, 75)) + 0.5 * float(np.median(event_us)) + 300.0
    return gap if gap > allowed else 0.0


def is_impossible(median_us: float, problem: Problem, sheet: HardwareSheet) -> bool:
    """Whether a measured median lies below what the device's memory can do, the L2 being cleared before each call."""
    return not median_us >= FLOOR_MARGIN * impossible_us(problem, sheet)
