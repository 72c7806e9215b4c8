"""What memory expects of one very action in one very situation: where its past trials ended, seen from where this parent stands.

A trial's gain depends on how slow its parent was; where the action ends depends on it much less. So what is averaged is the end, as a share
of the roofline floor, and the trials whose parents stood where this one stands count most.
"""

from __future__ import annotations

import math
import statistics

from knowledge.entry import Evidence, signature_of
from knowledge.fold import Fold
from knowledge.records import Situation
from tools.records import Action

NEAR = 0.01
"""Difference of two parents, as ln of their times, that counts for little: about what two timings of one candidate differ by."""
SAME = 0.1
"""Difference up to which the step of an equal plan is taken for the same step: a plan on the reference is equal for every size."""


def expect(fold: Fold, situation: Situation, action: Action, plan: str = "") -> float | None:
    """Gain that the trials of this very action in such a situation suggest; None where it never passed there.

    Trials of the same `plan` (that is, of the same step on the same parent) are believed alone; else those whose parents stood
    nearest to where this one stands count most.
    """
    known = fold.by_signature.get(signature_of(situation, action.kind, action.parameters))
    entry = fold.resolve(known) if known else None
    if entry is None or entry.retired is not None:
        return None
    own = [e for e in entry.evidence if e.exact and e.trial.gain]
    own = [e for e in own if not e.estimated] or own
    return _expected(own, situation.start, plan) if own else None


def _expected(own: list[Evidence], start: float | None, plan: str) -> float:
    placed = [e for e in own if e.start is not None]
    if start is None or not placed:
        return math.exp(statistics.fmean(math.log(e.trial.gain or 1.0) for e in own))
    apart = [abs(math.log(e.start or 1.0) - math.log(start)) for e in placed]
    weights = [float(e.plan == plan and distance <= SAME) for e, distance in zip(placed, apart, strict=True)]
    if not any(weights):
        weights = [math.exp(-(((distance - min(apart)) / NEAR) ** 2) / 2) for distance in apart]
    end = sum(weight * _end(e) for weight, e in zip(weights, placed, strict=True)) / sum(weights)
    return math.exp(end - math.log(start))


def _end(evidence: Evidence) -> float:
    """Natural log of the share of the floor that the candidate of a trial reached."""
    return math.log(evidence.start or 1.0) + math.log(evidence.trial.gain or 1.0)
