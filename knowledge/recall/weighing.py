"""What a trial weighs for whoever asks: age, versions and hardware each take their part, and each part has its reason in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from knowledge.log.entry import Evidence
from knowledge.recall.ageing import Moment
from knowledge.records import Situation
from tools.records import Record

OTHER_GENERATION = 0.5
"""Weight of a trial on another hardware generation, and relevance of an entry learnt on one."""
OTHER_DEVICE = 0.8
"""Weight of a trial on another device of the same generation: the same machine code, other bandwidths and clocks."""
ESTIMATED = 0.3
"""Weight of a trial whose gain was estimated."""
WORTH_SAYING = 0.95
"""A share that is left above this is not explained."""


@dataclass(frozen=True)
class Place:
    """The hardware that is asked about."""

    generation: str | None = None
    """None asks about none in particular."""
    device: str = ""
    """Hardware sheet; empty: none in particular."""

    @staticmethod
    def of(situation: Situation) -> Place:
        """The hardware of a situation."""
        return Place(situation.generation, situation.device)


class Weighed(Record):
    """What one trial weighs today, and why it is not 1."""

    run: str
    candidate: str
    weight: float
    """1 for one measured today, on this device, with the present versions."""
    reasons: tuple[str, ...]


def weight_of(evidence: Evidence, place: Place, moment: Moment) -> float:
    """What a trial weighs for a question about `place`: 1 for one measured today, there, and with the present versions."""
    return unestimated_weight(evidence, place, moment) * (ESTIMATED if evidence.estimated else 1.0)


def unestimated_weight(evidence: Evidence, place: Place, moment: Moment) -> float:
    """The same, whether it was measured or estimated."""
    return moment.weight(evidence) * _of_hardware(evidence, place)


def weighed(evidence: Evidence, place: Place, moment: Moment) -> Weighed:
    """What a trial weighs, with a reason for each part it has lost."""
    reasons = [f"{days} days old"] if moment.half_life and (days := moment.days_since(evidence.at)) else []
    reasons += moment.changed(evidence)
    reasons += [f"on {elsewhere}"] if (elsewhere := _elsewhere(evidence, place)) else []
    reasons += ["estimated"] if evidence.estimated else []
    weight = round(weight_of(evidence, place, moment), 4)
    return Weighed(run=evidence.trial.run, candidate=evidence.trial.candidate, weight=weight, reasons=tuple(reasons))


def lost(trials: Sequence[Evidence], place: Place, moment: Moment) -> str:
    """Say in one phrase what age, versions and hardware have taken from trials; empty where that is hardly anything."""
    left = sum(unestimated_weight(e, place, moment) for e in trials)
    if not trials or left >= WORTH_SAYING * len(trials):
        return ""
    stale = [change for e in trials for change in moment.changed(e)]
    elsewhere = Counter(place_of for e in trials if (place_of := _elsewhere(e, place)))
    said = ["by age"] if any(moment.half_life and moment.days_since(e.at) for e in trials) else []
    if stale:
        said.append(f"{sum(map(moment.is_stale, trials))} with other versions ({', '.join(dict.fromkeys(stale))})")
    said += [f"{count} on {name}" for name, count in sorted(elsewhere.items())]
    what = f"its {len(trials)} trials weigh" if len(trials) > 1 else "its trial weighs"
    return f"{what} {left:.1f}: {', '.join(said)}"


def _of_hardware(evidence: Evidence, place: Place) -> float:
    if place.generation is not None and evidence.generation is not None and place.generation != evidence.generation:
        return OTHER_GENERATION
    return OTHER_DEVICE if evidence.sheet and place.device and evidence.sheet != place.device else 1.0


def _elsewhere(evidence: Evidence, place: Place) -> str:
    """Where it was tried, if that is another place; empty if not."""
    if _of_hardware(evidence, place) == OTHER_GENERATION:
        return str(evidence.generation)
    return evidence.sheet if _of_hardware(evidence, place) < 1 else ""
