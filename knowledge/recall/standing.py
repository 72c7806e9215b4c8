"""Where an entry stands on a day: what its evidence makes of it for a device; worked out once, and again only when something changed."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from knowledge.log.entry import Entry
from knowledge.recall.ageing import Moment
from knowledge.recall.weighing import Place, weight_of

PRIOR_TRIALS = 1.0
"""N₀: a prediction weighs as much as one trial."""
UNKNOWN_GAIN = 1.15
"""Gain expected of an entry whose source gives no figure."""
SPREAD = 0.35
"""σ: standard deviation of the log gain of one trial; a factor of about 1.4."""
KEPT = 8
"""Standings kept an entry: one for each device that was asked about on one day."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What of an entry does not depend on the question, but for its hardware."""

    mean: float
    """Posterior mean of its log gain."""
    deviation: float
    """Standard deviation of that mean."""
    warns: bool
    fade: float
    """Share of its first relevance that it still has as a warning."""
    action: str
    """Kind and parameters: equal for equal actions."""


def standing_of(entry: Entry, place: Place, moment: Moment) -> Standing:
    """Say where an entry stands for a question about this hardware."""
    key = (place, moment.day, moment.edition, moment.half_life)
    found = entry.standings.get(key)
    if not isinstance(found, Standing):
        if len(entry.standings) >= KEPT:
            entry.standings.clear()
        found = entry.standings[key] = _worked_out(entry, place, moment)
    return found


def expected_log_gain(entry: Entry, place: Place, moment: Moment) -> tuple[float, float]:
    """Return the posterior mean of an entry's log gain, and its standard deviation."""
    # what was learnt here has no prediction beyond its own trials
    predicted = entry.current.expected_gain or UNKNOWN_GAIN
    weighted = [(weight_of(e, place, moment), e.realised_log_gain) for e in entry.evidence]
    total = PRIOR_TRIALS + sum(w for w, _ in weighted)
    mean = (PRIOR_TRIALS * math.log(predicted) + sum(w * r for w, r in weighted)) / total
    return mean, SPREAD / math.sqrt(total)


def _worked_out(entry: Entry, place: Place, moment: Moment) -> Standing:
    mean, deviation = expected_log_gain(entry, place, moment)
    action = f"{entry.written.kind} {json.dumps(entry.written.parameters, sort_keys=True)}"
    return Standing(mean=mean, deviation=deviation, warns=entry.warns, fade=moment.fade(entry), action=action)
