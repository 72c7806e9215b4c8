"""What memory expects of one very action in one very situation: where its past trials ended, seen from where this parent stands.

A trial's gain depends on how slow its parent was; where the action ends depends on it much less. So what is averaged is the end, as a share
of the roofline floor, and the trials whose parents stood where this one stands count most. Each counts by what age, other versions and
other hardware have left of its weight, and one of which hardly anything is left does not count. So do the trials of a strategy that is
recalled: of those that nothing was averaged of before, the weighted median foretells.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import accumulate

from knowledge.log.entry import Entry, Evidence, signature_of
from knowledge.log.fold import Fold
from knowledge.recall.ageing import FORGOTTEN, Moment
from knowledge.recall.standing import UNKNOWN_GAIN
from knowledge.recall.weighing import Place, unestimated_weight
from knowledge.records import Situation
from tools.records import Action

NEAR = 0.01
"""Difference of two parents, as ln of their times, that counts for little: about what two timings of one candidate differ by."""
SAME = 0.1
"""Difference up to which the step of an equal plan is taken for the same step: a plan on the reference is equal for every size."""

Weighted = list[tuple[Evidence, float]]


def expect(fold: Fold, situation: Situation, action: Action, moment: Moment, plan: str = "") -> float | None:
    """Gain that the trials of this very action in such a situation suggest; None where it never passed there, or too long ago.

    Trials of the same `plan` (that is, of the same step on the same parent) are believed alone, unless they were made with other
    versions and others with the present ones; else those whose parents stood nearest to where this one stands count most.
    """
    known = fold.by_signature.get(signature_of(situation, action.kind, action.parameters))
    entry = fold.resolve(known) if known else None
    if entry is None or entry.retired is not None:
        return None
    passed = [e for e in entry.evidence if e.exact and e.trial.gain]
    passed = [e for e in passed if not e.estimated] or passed
    place = Place.of(situation)
    own = [(e, weight) for e in passed if (weight := unestimated_weight(e, place, moment)) >= FORGOTTEN]
    return _expected(own, situation.start, plan, moment) if own else None


def foretold(entry: Entry, place: Place, moment: Moment) -> float | None:
    """Gain that a plan which rests on a strategy is to predict: what a pass wrote, else the median of its trials, else the source's figure.

    Measured trials silence estimated ones. Where all have aged away and no source gives a figure, what is expected of the untried; None
    where none ever passed.
    """
    current = entry.current
    if current.calibrated and current.expected_gain is not None:
        return current.expected_gain
    passed = [e for e in entry.evidence if e.trial.gain]
    passed = [e for e in passed if not e.estimated] or passed
    weighted = [(e.trial.gain or 1.0, weight) for e in passed if (weight := unestimated_weight(e, place, moment)) >= FORGOTTEN]
    if weighted:
        return weighted_median(weighted)
    return current.expected_gain or (UNKNOWN_GAIN if passed else None)


def weighted_median(weighted: list[tuple[float, float]]) -> float:
    """The value with half of the weight on either side, in a straight line between the two around it: equal weights give the median.

    Each value stands at the middle of its own weight, so that a day's difference in age does not make it jump.
    """
    ordered = sorted(weighted)
    ends = list(accumulate(weight for _, weight in ordered))
    places = [end - weight / 2 for end, (_, weight) in zip(ends, ordered, strict=True)]
    half = ends[-1] / 2
    after = bisect_left(places, half)
    if after == 0 or after == len(places):
        return ordered[min(after, len(places) - 1)][0]
    (low, _), (high, _) = ordered[after - 1], ordered[after]
    return low + (high - low) * (half - places[after - 1]) / (places[after] - places[after - 1])


def _expected(own: Weighted, start: float | None, plan: str, moment: Moment) -> float:
    placed = [(e, weight) for e, weight in own if e.start is not None]
    if start is None or not placed:
        return math.exp(_mean([(math.log(e.trial.gain or 1.0), weight) for e, weight in own]))
    chosen = _of_plan(placed, start, plan, moment) or _by_distance(placed, start)
    return math.exp(_mean([(_end(e), weight) for e, weight in chosen]) - math.log(start))


def _of_plan(placed: Weighted, start: float, plan: str, moment: Moment) -> Weighted:
    """Trials of the very step; none where the only ones of the present versions are others'."""
    mine = [(e, weight) for e, weight in placed if e.plan == plan and _apart(e, start) <= SAME]
    fresh = [(e, weight) for e, weight in mine if not moment.is_stale(e)]
    return fresh or ([] if any(not moment.is_stale(e) for e, _ in placed) else mine)


def _by_distance(placed: Weighted, start: float) -> Weighted:
    nearest = min(_apart(e, start) for e, _ in placed)
    return [(e, weight * math.exp(-(((_apart(e, start) - nearest) / NEAR) ** 2) / 2)) for e, weight in placed]


def _apart(evidence: Evidence, start: float) -> float:
    return abs(math.log(evidence.start or 1.0) - math.log(start))


def _end(evidence: Evidence) -> float:
    """Natural log of the share of the floor that the candidate of a trial reached."""
    return math.log(evidence.start or 1.0) + math.log(evidence.trial.gain or 1.0)


def _mean(weighted: list[tuple[float, float]]) -> float:
    return sum(value * weight for value, weight in weighted) / sum(weight for _, weight in weighted)
