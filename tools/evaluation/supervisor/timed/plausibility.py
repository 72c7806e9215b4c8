"""Whether a measured time can be believed: its tier, the agreement of the clocks, and what no device can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tools.cost.roofline import impossible_us
from tools.records import HardwareSheet, Problem, Tier

Times = Mapping[str, Sequence[float]]
"""Microseconds, by baseline."""

AGREEMENT = 0.05
"""A call's events may be this share of them shorter than what its chains take by the clock outside of its process,"""
AGREEMENT_US = 3.0
"""or this much, whichever is more: what the events of a short kernel are off by."""

LIE = 0.25
"""Events that leave out more than this share of what they say,"""
LIE_US = 15.0
"""and more than this, are a lie; what is less is charged: the fences of a chain cost an honest kernel of several streams a little, too."""

IDLE_US = 8.0
"""How much longer than behind others a call may take on an idle device: its first kernel is on its way for as long."""

TAIL_US = 300.0
"""How long after its last call, at the least, a chain's process may take to say that nothing is in flight on any stream."""

SABOTAGE = 0.15
"""A baseline's median beside the candidate may be this share above the larger of its medians before and after it,"""
SABOTAGE_US = 5.0
"""or this much, whichever is more: a call after another process's begins with colder tables and instruction caches."""
HEATED = 0.5
"""The share by which it may exceed the smaller of the two, and still be what the candidate is compared with."""

RIVALS = 2.0
"""A baseline alone that takes more times as long as the fastest is no rival: whether it is steady decides nothing."""

LEFT_OUT = 0.5
"""The fastest of the judged calls may be this share above the median of all calls, or `SABOTAGE_US`, whichever is more."""

FLOOR_MARGIN = 0.95
"""A time below this share of the least possible one is impossible; the rest is for the datasheet's rounding."""


def allowance_us(event_us: float) -> float:
    """How much longer a call may take, by the clock outside of its process, than its events say, and count as confirmed."""
    return max(AGREEMENT * event_us, AGREEMENT_US)


def dirty_us(output_bytes: int, sheet: HardwareSheet) -> float:
    """How long it may take to write the outputs of the call before out of the L2, where nothing has cleared it since."""
    return min(output_bytes, sheet.l2_mib * 1024 * 1024) / (sheet.memory_gbps * 1e3)


def hidden_us(event_us: Sequence[float], bracket_us: Sequence[float], more_us: float = 0.0) -> float:
    """What the clock outside has beyond the events, of calls in chains, microseconds; 0 where that is no more than allowed.

    `more_us` is allowed besides. The fastest chain counts: noise only adds, and what is hidden is in every chain.
    """
    if not bracket_us:
        return 0.0
    event = float(np.median(event_us))
    excess = min(bracket_us) - event
    return excess if excess > allowance_us(event) + more_us else 0.0


def idle_excess_us(event_us: Sequence[float], idle_us: Sequence[float]) -> float:
    """How much longer a call takes where it finds an idle device, the host's part left out; 0 where that is ordinary."""
    event = float(np.median(event_us))
    excess = min(idle_us, default=0.0) - event
    return excess if excess > max(IDLE_US, AGREEMENT * event) else 0.0


def is_lie(event_us: Sequence[float], gap_us: float) -> bool:
    """Whether what the clock outside has beyond the events is too much to be charged."""
    event = float(np.median(event_us))
    return gap_us > max(LIE_US, LIE * event)


def charged_us(event_us: Sequence[float], bracket_us: Sequence[float], warm_gap_us: float = 0.0) -> float:
    """What the clock outside has beyond the events by their medians, or by warm chains where that is more."""
    beyond = float(np.median(bracket_us)) - float(np.median(event_us)) if bracket_us else 0.0
    return max(0.0, beyond, warm_gap_us)


def tier(event_us: Sequence[float], bracket_us: Sequence[float]) -> Tier:
    """Bracketed where the clock outside of the candidate's process confirms the events, else in-process."""
    return Tier.BRACKETED if bracket_us and not hidden_us(event_us, bracket_us) else Tier.IN_PROCESS


def left_behind_us(event_us: Sequence[float], tail_us: Sequence[float], calls: int) -> float:
    """How much longer than its caller's stream a chain's other streams worked, in every chain; 0 where that is nothing to speak of."""
    least = min(tail_us, default=0.0)
    return least if least > max(TAIL_US, AGREEMENT * calls * float(np.median(event_us))) else 0.0


def left_out(event_us: Sequence[float], judged_us: Sequence[float]) -> str:
    """Say that work was left out of the calls that were not judged; empty where those that were took no longer.

    Few calls of a large problem are judged, so that whoever skips some may be lucky. Then the judged ones, which are right, were slow.
    """
    median, least = float(np.median(event_us)), min(judged_us)
    if least <= median + max(LEFT_OUT * median, SABOTAGE_US):
        return ""
    return f"The calls that were judged took {least:.4g} µs or more, and the median of all is {median:.4g} µs: work was left out of others."


def is_slower(beside_us: float, alone_us: float) -> bool:
    """Whether a baseline took longer than it may beside a candidate that leaves it alone."""
    return beside_us > alone_us + max(SABOTAGE * alone_us, SABOTAGE_US)


def slowed_down(beside_us: Sequence[float], before_us: Sequence[float], after_us: Sequence[float]) -> float:
    """How many times slower a baseline was while the candidate's process lived than before and after it; 0 where that is ordinary."""
    beside, before, after = (float(np.median(times)) for times in (beside_us, before_us, after_us))
    return beside / min(before, after) if is_slower(beside, max(before, after)) else 0.0


def rivals(fastest_us: Mapping[str, float]) -> frozenset[str]:
    """Name the baselines that a candidate can have to beat, by the fastest median of each alone.

    A reference that launches many kernels from Python varies with its host, and is several times as slow as what a compiler makes of
    it: no right kernel is refused for that, and nobody gains by slowing it down, since its time alone counts.
    """
    return frozenset(name for name, us in fastest_us.items() if us <= RIVALS * min(fastest_us.values()))


def fastest_alone(before: Times, after: Times) -> dict[str, float]:
    """Give each baseline's smaller median of those before and after the candidate's process."""
    return {name: float(min(np.median(before[name]), np.median(after[name]))) for name in before}


def steady(
    name: str, beside_us: Sequence[float], before_us: Sequence[float], after_us: Sequence[float], *, is_rival: bool = True
) -> tuple[Sequence[float], str]:
    """Give the times by which a candidate is compared with a baseline, and what is to be said of them.

    A heated device stays slow for a while, and many small launches wait for a busy host: then a baseline alone has two times, and the
    faster counts. Whoever slows it down, and keeps it slow, gains nothing. Of what is no rival it counts from the first doubt on.
    """
    beside, before, after = (float(np.median(times)) for times in (beside_us, before_us, after_us))
    faster = min(before, after)
    if beside <= faster + max((HEATED if is_rival else SABOTAGE) * faster, SABOTAGE_US):
        return beside_us, ""
    said = f"{beside:.4g} µs beside the candidate, {before:.4g} µs before and {after:.4g} µs after its process: the faster counts"
    return before_us if before <= after else after_us, f"The {name} baseline is unsteady: {said}."


def sabotage(beside: Times, before: Times, after: Times) -> dict[str, str]:
    """Say which rivals were slowed down while the candidate's process lived: a sentence by name."""
    found, contending = {}, rivals(fastest_alone(before, after))
    for name in (name for name in beside if name in contending):
        slower = slowed_down(beside[name], before[name], after[name])
        if slower:
            together, first, last = (float(np.median(times[name])) for times in (beside, before, after))
            found[name] = (
                f"The {name} baseline took {together:.4g} µs beside the candidate, {slower:.2f} times as long as without its process "
                f"({first:.4g} µs before, {last:.4g} µs after)."
            )
    return found


def is_impossible(median_us: float, problem: Problem, sheet: HardwareSheet, *, packs: bool = False) -> bool:
    """Whether a measured median lies below what the device's memory can do, the L2 being cleared before each call; zero is, anywhere.

    A kernel that `packs` parameters, in a step that is timed by itself, need not read them.
    """
    return not median_us > 0 or not median_us >= FLOOR_MARGIN * impossible_us(problem, sheet, packs=packs)
