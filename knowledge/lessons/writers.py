"""The textual gradient: from the replay buffer, lessons and predicted gains are rewritten by what was measured.

After KernelBlaster (arXiv 2602.14293): evaluate the policy (what did each strategy lead to), analyse the gap (predicted
against measured), update (rewrite). A language model may write the words; the figures are always worked out here.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol

from knowledge.learning.replay import Experience
from knowledge.log.entry import Entry, Evidence
from knowledge.recall.ageing import Moment
from knowledge.recall.standing import PRIOR_TRIALS, SPREAD, UNKNOWN_GAIN
from knowledge.recall.weighing import Place, weight_of
from knowledge.records import LONGEST, RECORD, Changes, Outcome, Strategy, changes_of
from tools.records import Record

FEWEST_TRIES = 2
"""One try is told by the reviewer's own lesson."""
NOTICEABLE = math.log(1.05)
"""A prediction that is off by less is left alone."""


class Case(Record):
    """One strategy, what it promised and what came of it."""

    id: str
    strategy: Strategy
    """As it stands, with its trials."""
    outcomes: tuple[Outcome, ...]
    """From the replay buffer, oldest first."""
    changes: Changes
    expected: float
    """Gain to predict: shrunken mean over the trials that passed."""
    doubt: float
    """Standard deviation of its logarithm."""
    contrast: tuple[str, ...]
    """Where it gained and where it did not, one sentence each."""

    @property
    def gap(self) -> float:
        """Say ln of what it promised over what it should: above 0, too much was promised. 0 without a promise."""
        return math.log(self.strategy.expected_gain / self.expected) if self.strategy.expected_gain else 0.0


class Proposal(Record):
    """What a writer wants a strategy to say."""

    lesson: str
    reason: str
    expected_gain: float | None = None
    """None: what the statistics say."""


class LessonWriter(Protocol):
    """Rewrites lessons; None leaves one as it is."""

    @property
    def name(self) -> str:
        """Who writes: `statistics`, or the model's name."""

    async def rewrite(self, case: Case) -> Proposal | None:
        """Propose other words for one strategy; what goes wrong raises KernelwrightError."""


class StatisticalWriter:
    """Appends the record to the author's words; needs no model."""

    name = "statistics"

    async def rewrite(self, case: Case) -> Proposal | None:
        """Say in figures what came of the strategy."""
        return statistical(case)


def statistical(case: Case) -> Proposal | None:
    """Append the record to the author's words; None where it says nothing new."""
    words = case.strategy.lesson.partition(RECORD)[0].rstrip()
    tail = " ".join((record_of(case.changes), *case.contrast))
    lesson = f"{words[: LONGEST - len(tail) - len(RECORD)]}{RECORD}{tail}"
    return None if lesson == case.strategy.lesson else Proposal(lesson=lesson, reason=gap_of(case))


def record_of(changes: Changes) -> str:
    """Tries, gains and failures in one sentence."""
    said = f"{changes.passes} of {changes.tries} tries passed"
    if changes.median is not None:
        said += f", gains {changes.median:.2f}x in the middle ({changes.low:.2f}–{changes.high:.2f}x, {changes.basis})"
    if changes.failures:
        said += "; " + ", ".join(f"{count} ended {verdict}" for verdict, count in sorted(changes.failures.items()))
    return f"{said}."


def gap_of(case: Case) -> str:
    """Say what was promised and what came of it."""
    promised = case.strategy.expected_gain
    said = f"{case.changes.passes} of {case.changes.tries} tries passed"
    middle = f", {case.changes.median:.2f}x in the middle ({case.changes.basis})" if case.changes.median else ""
    return f"{said}{middle}; {f'{promised:.2f}x was predicted' if promised else 'nothing was predicted'}."


def case_of(entry: Entry, seen: Sequence[Experience], moment: Moment) -> Case | None:
    """Put a strategy's case together; None where too little was tried."""
    if len(entry.evidence) < FEWEST_TRIES:
        return None
    expected, doubt = prediction_of(entry, moment)
    return Case(
        id=entry.id,
        strategy=entry.strategy,
        outcomes=tuple(one.outcome for one in seen),
        changes=changes_of([e.trial for e in entry.evidence]),
        expected=expected,
        doubt=doubt,
        contrast=contrast_of(seen),
    )


def prediction_of(entry: Entry, moment: Moment) -> tuple[float, float]:
    """Gain to predict of a try that passes, and the standard deviation of its logarithm.

    A mean of the trials' log gains by what each weighs where the strategy was written, drawn towards what the source predicts
    as if that were one trial. Measured trials silence estimated ones.
    """
    passed = [e for e in entry.evidence if e.trial.gain]
    measured = [e for e in passed if not e.estimated]
    place = Place.of(entry.written.situation)
    logs = [(weight_of(e, place, moment), _log(e)) for e in measured or passed]
    total = PRIOR_TRIALS + sum(weight for weight, _ in logs)
    mean = (PRIOR_TRIALS * math.log(entry.written.expected_gain or UNKNOWN_GAIN) + sum(weight * log for weight, log in logs)) / total
    return math.exp(mean), SPREAD / math.sqrt(total)


def contrast_of(seen: Sequence[Experience]) -> tuple[str, ...]:
    """Name the property of the situations that best tells where a strategy gained from where it did not; none where nothing does."""
    best: tuple[float, str] = (0.0, "")
    for name in ("shapes", "bottleneck", "dtypes", "generation", "policy"):
        groups: dict[str, list[bool]] = defaultdict(list)
        for one in seen:
            value = getattr(one.outcome.situation, name)
            groups["/".join(value) if isinstance(value, tuple) else str(value or "any")].append(bool(one.outcome.accepted))
        told = {value: outcomes for value, outcomes in groups.items() if len(outcomes) >= FEWEST_TRIES}
        shares = {value: statistics.fmean(outcomes) for value, outcomes in told.items()}
        if len(shares) > 1 and (apart := max(shares.values()) - min(shares.values())) > max(best[0], 0.5):
            listed = [f"{value} {sum(told[value])} of {len(told[value])}" for value in sorted(told, key=lambda v: -shares[v])]
            best = (apart, f"Gained by {name}: {', '.join(listed)}.")
    return (best[1],) if best[1] else ()


def bounded(case: Case, wanted: float | None) -> tuple[float, str]:
    """The prediction to write: a writer's own where the trials leave room for it, else what the statistics say, and a remark."""
    if wanted is None or not math.isfinite(wanted) or wanted <= 0:
        return round(case.expected, 4), ""
    if abs(math.log(wanted / case.expected)) <= 2 * case.doubt:
        return round(wanted, 4), ""
    return round(case.expected, 4), f" A prediction of {wanted:.2f}x was proposed, which the trials rule out."


def _log(evidence: Evidence) -> float:
    return math.log(evidence.trial.gain or 1.0)
