"""How much faster a child is than its parent, with the interval that the measurements support.

Measured. Each evaluation timed the candidate and the same baselines interleaved in one session, so what drifts between
sessions (clocks, temperature, neighbours) is in both and leaves their ratio. With s = baseline / candidate and its 95 % bootstrap
interval [l, h], child c and parent p, and all distances taken in logarithms:

    gain = s_c / s_p
    low  = gain · exp(−√( ln(s_c/l_c)² + ln(h_p/s_p)² + w² ))
    high = gain · exp(+√( ln(h_c/s_c)² + ln(s_p/l_p)² + w² ))

The bootstrap knows only the noise within a session. w is what two sessions differ by when nothing has changed, read from the
second baseline: r = compile / eager should be the same in every session, so w = t · √2 · (sample standard deviation of
ln r over the n sessions at hand: the child's, the parent's, the baselines' own), t being Student's 97.5 % quantile for
n − 1 degrees of freedom, since so few sessions know their own spread badly. Where there is no second baseline w is 0,
and a concern says so.

Where the parent is the reference, the child is compared with the fastest baseline of its own session, whose
interval is the gain's. Estimated times come from a deterministic model: the interval is the value itself. A measured
and an estimated time, and times of different devices or models, are never compared. Measured tiers differ in how
far the same events are confirmed, so they are; the gain bears the weaker of the two.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from typing import NamedTuple

from agents.reviewer.protocol import Gain, ReviewCase
from tools.records import Baselines, Estimate, Sample, Tier, Timing

STUDENT_T = {1: 12.706, 2: 4.303}
"""97.5 % quantile of Student's t by degrees of freedom (any table of it); three sessions are the most a case has."""


_BY_TRUST = (Tier.SEALED, Tier.BRACKETED, Tier.IN_PROCESS)
"""Measured tiers, the most trusted first."""


class Comparison(NamedTuple):
    """A gain, or why there is none."""

    gain: Gain | None
    against: str
    """What the child was compared with, in words; where there is no gain, the sentence that says why."""
    concerns: tuple[str, ...] = ()


def compare(case: ReviewCase) -> Comparison:
    """Compare a passing child with its parent."""
    child = case.evaluation
    if child.timing is not None:
        return _measured(case, child.timing)
    if child.estimate is not None:
        return _estimated(case, child.estimate)
    return Comparison(None, "The candidate was neither timed nor estimated, so there is nothing to compare.")


def _measured(case: ReviewCase, child: Timing) -> Comparison:
    parent = case.parent_evaluation
    if parent is None:
        return _against_reference(child)
    if parent.timing is None:
        return Comparison(None, f"The candidate's time is measured ({child.tier}) and its parent's is not: they are not compared.")
    if why := _incomparable(child, parent.timing):
        return Comparison(None, why)
    baseline = _common(child, parent.timing)
    if baseline is None:
        return Comparison(None, "Candidate and parent were timed beside no baseline in common, so their sessions cannot be compared.")
    ratios = _session_ratios(child.baselines, parent.timing.baselines, case.baselines.samples)
    gain = _ratio(
        child.speedups[baseline], parent.timing.speedups[baseline], _session_term(ratios), _weaker(child.tier, parent.timing.tier)
    )
    if gain is None:
        return Comparison(None, "The intervals of the measured speed-ups are not usable (zero, infinite or not a number).")
    concerns = []
    if len(ratios) < 2:
        concerns.append("Only one baseline was timed, so what two sessions differ by is not in the interval.")
    if child.tier is not parent.timing.tier:
        concerns.append(f"The candidate's time is {child.tier}, its parent's {parent.timing.tier}: the gain counts as {gain.tier}.")
    return Comparison(gain, f"its parent, both timed beside {baseline}", tuple(concerns))


def _against_reference(child: Timing) -> Comparison:
    if not child.speedups:
        return Comparison(None, "The candidate was timed beside no baseline, so it cannot be compared with the reference.")
    fastest = min(child.speedups, key=lambda name: child.speedups[name][0])
    value, low, high = child.speedups[fastest]
    if not _usable(value, low, high):
        return Comparison(None, "The interval of the measured speed-up is not usable (zero, infinite or not a number).")
    return Comparison(Gain(value=value, low=low, high=high, tier=child.tier), f"the reference's better form ({fastest})")


def _estimated(case: ReviewCase, child: Estimate) -> Comparison:
    parent = case.parent_evaluation
    if parent is None:
        return _against_estimated_reference(case.baselines, child)
    if parent.estimate is None:
        return Comparison(None, "The candidate's time is estimated and its parent's is not: they are not compared.")
    if (parent.estimate.target, parent.estimate.model) != (child.target, child.model):
        return Comparison(None, "Candidate and parent were estimated for other targets or by other models: they are not compared.")
    return Comparison(_point(parent.estimate.candidate_us / child.candidate_us), f"its parent by the model {child.model}")


def _against_estimated_reference(baselines: Baselines, child: Estimate) -> Comparison:
    if baselines.samples:
        return Comparison(None, "The candidate's time is estimated and the reference's is measured: they are not compared.")
    return Comparison(_point(child.speedup), f"eager execution of the reference by the model {child.model}")


def _point(value: float) -> Gain:
    return Gain(value=value, low=value, high=value, tier=Tier.ESTIMATED)


def _incomparable(child: Timing, parent: Timing) -> str:
    if child.device != parent.device:
        return f"The candidate was timed on {child.device} and its parent on {parent.device}: they are not compared."
    return ""


def _weaker(one: Tier, other: Tier) -> Tier:
    return max(one, other, key=_BY_TRUST.index)


def _common(child: Timing, parent: Timing) -> str | None:
    """Name a baseline that both have, eager first: it varies least from build to build."""
    both = [name for name in child.speedups if name in parent.speedups]
    return "eager" if "eager" in both else next(iter(sorted(both)), None)


def _ratio(child: tuple[float, float, float], parent: tuple[float, float, float], session: float, tier: Tier) -> Gain | None:
    if not (_usable(*child) and _usable(*parent)):
        return None
    (c, c_low, c_high), (p, p_low, p_high) = child, parent
    value = c / p
    down = math.hypot(math.log(c / c_low), math.log(p_high / p), session)
    up = math.hypot(math.log(c_high / c), math.log(p / p_low), session)
    return Gain(value=value, low=value * math.exp(-down), high=value * math.exp(up), tier=tier)


def _usable(value: float, low: float, high: float) -> bool:
    return 0 < low <= value <= high < math.inf


def _session_ratios(*sessions: dict[str, Sample]) -> list[float]:
    """Logarithm of compile / eager in each session that timed both."""
    both: Iterable[dict[str, Sample]] = (s for s in sessions if "eager" in s and "compile" in s)
    return [math.log(s["compile"].median_us / s["eager"].median_us) for s in both]


def _session_term(ratios: list[float]) -> float:
    """Half width, in logarithms, of what the ratio of two sessions varies by."""
    return STUDENT_T[len(ratios) - 1] * math.sqrt(2) * statistics.stdev(ratios) if len(ratios) > 1 else 0.0
