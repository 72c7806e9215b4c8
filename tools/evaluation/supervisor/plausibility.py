"""Whether a measured time can be believed: its tier, the agreement of the clocks, and what no device can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tools.cost.roofline import impossible_us
from tools.evaluation.wire.lead_in import HEAD_START_CYCLES
from tools.records import HardwareSheet, Problem, Tier

Times = Mapping[str, Sequence[float]]
"""Microseconds, by baseline."""

AGREEMENT = 0.05
"""The runner's own events may be this much shorter than the supervisor's bracket for the figure to count as bracketed."""

SABOTAGE = 0.15
"""A baseline's median beside the candidate may be this share above the larger of its medians before and after it,"""
SABOTAGE_US = 5.0
"""or this much, whichever is more: a call after another process's begins with colder tables and instruction caches."""
HEATED = 0.5
"""The share by which it may exceed the smaller of the two: a device that was heated stays slow for a while."""

HEAD_START_US = HEAD_START_CYCLES / 1000
"""The longest head start of a primed call: at 1 GHz, slower than any known device works."""

LEFT_OUT = 0.5
"""The fastest of the judged calls may be this share above the median of all calls, or `SABOTAGE_US`, whichever is more."""

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
    Where the machine is busy that is much; so the least difference is held against the lower quartile in the same way. A call that
    found the machine quiet waits for nobody, and what is hidden is in every call.
    """
    gaps = np.asarray(answer_us) - np.asarray(event_us)
    for gap, quartile in ((float(np.median(gaps)), 75), (float(gaps.min()), 25)):
        if gap > _allowed_us(event_us, overhead_us, quartile):
            return gap
    return 0.0


def hidden_us(primed_us: Sequence[float], answer_us: Sequence[float], judged_us: Sequence[float], overhead_us: Sequence[float]) -> float:
    """How much longer idle calls took to answer than the events of primed ones explain; 0 where they explain it.

    Whoever can tell the two apart could shorten the events of primed calls alone, or leave idle calls undone. Idle calls whose outputs
    are judged were not left undone: from two on, the faster of those `judged_us` counts too. A head start hides the host's launches.
    """
    answered = max(float(np.median(answer_us)), min(judged_us) if len(judged_us) > 1 else 0.0)
    gap = answered - float(np.median(primed_us))
    return gap if gap > _allowed_us(primed_us, overhead_us) + HEAD_START_US else 0.0


def _allowed_us(event_us: Sequence[float], overhead_us: Sequence[float], quartile: int = 75) -> float:
    return 2 * float(np.percentile(overhead_us, quartile)) + 0.5 * float(np.median(event_us)) + 300.0


def left_out(event_us: Sequence[float], judged_us: Sequence[float]) -> str:
    """Say that work was left out of the calls that were not judged; empty where those that were took no longer.

    Few calls of a large problem are judged, so that whoever skips some may be lucky. Then the judged ones, which are right, were slow.
    """
    median, least = float(np.median(event_us)), min(judged_us)
    if least <= median + max(LEFT_OUT * median, SABOTAGE_US):
        return ""
    return f"The calls that were judged took {least:.4g} µs or more, and the median of all is {median:.4g} µs: work was left out of others."


def slowed_down(beside_us: Sequence[float], before_us: Sequence[float], after_us: Sequence[float]) -> float:
    """How many times slower a baseline was while the candidate's process lived than before and after it; 0 where that is ordinary."""
    beside, before, after = (float(np.median(times)) for times in (beside_us, before_us, after_us))
    slower, faster = max(before, after), min(before, after)
    ordinary = beside <= slower + max(SABOTAGE * slower, SABOTAGE_US) and beside <= faster + max(HEATED * faster, SABOTAGE_US)
    return 0.0 if ordinary else beside / faster


def sabotage(beside: Times, before: Times, after: Times) -> str:
    """Say which baseline was slowed down while the candidate's process lived; empty where none was."""
    for name in beside:
        slower = slowed_down(beside[name], before[name], after[name])
        if slower:
            together, first, last = (float(np.median(times[name])) for times in (beside, before, after))
            return (
                f"The {name} baseline took {together:.4g} µs beside the candidate, {slower:.2f} times as long as without its process "
                f"({first:.4g} µs before, {last:.4g} µs after)."
            )
    return ""


def is_impossible(median_us: float, problem: Problem, sheet: HardwareSheet, *, packs: bool = False) -> bool:
    """Whether a measured median lies below what the device's memory can do, the L2 being cleared before each call; zero is, anywhere.

    A kernel that `packs` parameters, in a step that is timed by itself, need not read them.
    """
    return not median_us > 0 or not median_us >= FLOOR_MARGIN * impossible_us(problem, sheet, packs=packs)
