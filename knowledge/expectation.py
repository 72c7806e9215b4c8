"""What memory expects of one very action in one very situation: where its past trials ended, seen from where this parent stands.

A trial's gain depends on how slow its parent was; where the action ends depends on it much less. So what is averaged is the end, as a share
of the roofline floor, and the trials whose parents stood where this one stands count most.
"""

from __future__ import annotations

import math
import statistics

from knowledge.entry import Entry, Evidence, signature_of
from knowledge.fold import Fold
from knowledge.records import Situation
from tools.records import Action

NEAR = 0.05
"""Difference of two parents, as ln of their times, at which a trial's weight has fallen to 0.61: a choice of ours."""
FAR = 0.01
"""Weight that a trial keeps however far its parent stood."""


def expect(fold: Fold, situation: Situation, action: Action) -> float | None:
    """Gain that the trials of this very action in such a situation suggest; None where it never passed there."""
    known = fold.by_signature.get(signature_of(situation, action.kind, action.parameters))
    entry = fold.resolve(known) if known else None
    return _expected(entry, situation.start) if entry is not None and entry.retired is None else None


def _expected(entry: Entry, start: float | None) -> float | None:
    own = [e for e in entry.evidence if e.exact and e.trial.gain]
    own = [e for e in own if not e.estimated] or own
    if not own:
        return None
    placed = [e for e in own if e.start is not None]
    if start is None or not placed:
        return math.exp(statistics.fmean(math.log(e.trial.gain or 1.0) for e in own))
    weights = [FAR + math.exp(-((math.log(e.start or 1.0) - math.log(start)) ** 2) / (2 * NEAR**2)) for e in placed]
    end = sum(weight * _end(e) for weight, e in zip(weights, placed, strict=True)) / sum(weights)
    return math.exp(end - math.log(start))


def _end(evidence: Evidence) -> float:
    """Natural log of the share of the floor that the candidate of a trial reached."""
    return math.log(evidence.start or 1.0) + math.log(evidence.trial.gain or 1.0)
