"""An entry: a strategy together with all the evidence about it, and the state that this evidence implies."""

from __future__ import annotations

import math
import statistics
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from knowledge.records import Situation, Strategy, StrategyState, Trial
from tools.records import ActionKind, Record, Tier, Verdict, content_hash
from tools.records.renamed import Value, first_parameters

CONFIRMING_GAINS = 3
"""Measured gains that confirm an entry, if they are also the majority of its tries."""

CONTRADICTING_TRIES = 2
"""Fewest tries that can contradict an entry, if the majority of them did not gain."""

Origin = Literal["seed", "learnt", "imported"]


class Evidence(Record):
    """One trial, and what it takes to weigh it."""

    trial: Trial
    plan: str
    generation: str | None
    """Hardware generation of the trial; None where it is not known."""
    sheet: str = ""
    """Hardware sheet of the trial's device; empty where it is not known."""
    accepted: bool
    """Whether the reviewer found the gain proven."""
    cited: bool
    """True where the plan named the strategy; False where it only did the same in the same situation."""
    predicted_gain: float | None = None
    exact: bool = False
    """True where the plan's action and situation were the strategy's own; False where it only cited it, or that is not known."""
    start: float | None = None
    """Share of the roofline floor that the parent had reached; None where that is not known."""
    at: str = ""
    """When it was credited, UTC; empty for evidence of schema 1 until it is read from its event."""

    @property
    def key(self) -> str:
        """One plan of one run is one trial of a strategy."""
        return f"{self.trial.run}:{self.plan}"

    @property
    def gained(self) -> bool:
        """Whether it passed, was accepted and was faster."""
        return self.accepted and self.trial.verdict is Verdict.PASS and (self.trial.gain or 0.0) > 1.0

    @property
    def estimated(self) -> bool:
        """Whether its gain, if it has one, was estimated rather than measured."""
        return self.trial.tier == Tier.ESTIMATED

    @property
    def realised_log_gain(self) -> float:
        """Natural log of the gain that a search keeps: a step that failed, lost or was not accepted is rolled back, ln 1 = 0."""
        return math.log(self.trial.gain) if self.gained and self.trial.gain else 0.0


class Rewrite(Record):
    """One change of a strategy's words or prediction, with what stood there before."""

    lesson: tuple[str, str] | None = None
    """Before and after; None where it stayed."""
    expected_gain: tuple[float | None, float | None] | None = None
    """Before and after; None where it stayed."""
    reason: str
    by: str
    """`statistics`, or the model's name."""
    at: str = ""
    seq: int = 0
    """Number of the change in its log."""


@dataclass(frozen=True)
class Tally:
    """How often an entry was tried, and how often it gained; measured trials silence estimated ones."""

    tries: int
    gained: int
    failed: int
    """Tries whose candidate did not pass."""
    measured: bool
    """True where the gains counted were measured; False where they are estimates."""
    median_gain: float | None
    """Of the tries that passed, parent time over candidate time."""


@dataclass
class Entry:
    """What the log says of one strategy so far."""

    id: str
    seq: int
    """Of the event that first wrote it."""
    written: Strategy
    """As first written: no trials."""
    origin: Origin
    row: int = 0
    """Its number in its fold."""
    text_seq: int = 0
    """Of the event that gave it the words it has now."""
    rewrites: list[Rewrite] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    ignored: int = 0
    """How often it was recalled for a plan that did not cite it."""
    retired: str | None = None
    """Why it is no longer recalled."""
    successor: str | None = None
    """Id of the strategy that replaced it."""
    seed: str | None = None
    """Name of the seed, for a seeded one."""
    revision: int = 0
    """Of the seed."""
    _credited: set[str] = field(default_factory=set, repr=False)
    _tally: Tally | None = field(default=None, repr=False)
    """Asked for many times a recall; forgotten when anything about the entry changes."""
    standings: dict[Hashable, Any] = field(default_factory=dict, repr=False)
    """Kept for `knowledge.recall.standing`, and forgotten likewise."""

    @property
    def current(self) -> Strategy:
        """Its words and prediction as they stand now, without trials; its id stays."""
        changes: dict[str, object] = {}
        for rewrite in self.rewrites:
            if rewrite.lesson is not None:
                changes |= {"lesson": rewrite.lesson[1], "held_as": self.id}
            if rewrite.expected_gain is not None:
                changes |= {"expected_gain": rewrite.expected_gain[1], "calibrated": rewrite.expected_gain[1] is not None}
        return self.written.model_copy(update=changes) if changes else self.written

    def credit(self, evidence: Evidence) -> bool:
        """Add evidence; return False where the same plan was already credited."""
        if evidence.key in self._credited:
            return False
        self._credited.add(evidence.key)
        self.evidence.append(evidence)
        self._forget()
        return True

    def write(self, strategy: Strategy) -> None:
        """Take the same words again with other parameters, gain or source: the newest counts, the evidence stays."""
        self.written = strategy
        self._forget()

    def reword(self, rewrite: Rewrite) -> None:
        """Take other words or another prediction."""
        self.rewrites.append(rewrite)
        self._forget()

    def _forget(self) -> None:
        self._tally = None
        self.standings.clear()

    def tally(self) -> Tally:
        """Count the tries; failures count on every tier, gains on the measured tiers where there are any."""
        if self._tally is None:
            self._tally = self._counted()
        return self._tally

    def _counted(self) -> Tally:
        passed = [e for e in self.evidence if e.trial.verdict is Verdict.PASS]
        failed = len(self.evidence) - len(passed)
        measured = [e for e in passed if not e.estimated]
        counted = measured or passed
        gains = [e.trial.gain for e in counted if e.trial.gain]
        return Tally(
            tries=len(counted) + failed,
            gained=sum(e.gained for e in counted),
            failed=failed,
            measured=bool(measured),
            median_gain=statistics.median(gains) if gains else None,
        )

    @property
    def state(self) -> StrategyState:
        """Derive the state from the evidence alone.

        Retired by an event; as written without a try; contradicted once at least two tries were made and most did not
        gain; confirmed by at least three measured gains that are most of the tries; else observed. Estimates can
        contradict, they never confirm.
        """
        if self.retired is not None:
            return StrategyState.RETIRED
        tally = self.tally()
        if not tally.tries:
            return self.written.state
        if tally.tries >= CONTRADICTING_TRIES and 2 * tally.gained < tally.tries:
            return StrategyState.CONTRADICTED
        if tally.measured and tally.gained >= CONFIRMING_GAINS and 2 * tally.gained > tally.tries:
            return StrategyState.CONFIRMED
        return StrategyState.OBSERVED

    @property
    def warns(self) -> bool:
        """Whether it is to be recalled as a warning: contradicted, or learnt here from tries of which none gained."""
        if self.state is StrategyState.CONTRADICTED:
            return True
        tally = self.tally()
        return self.origin != "seed" and tally.tries > 0 and tally.gained == 0

    @property
    def strategy(self) -> Strategy:
        """The strategy as it stands: its trials, its state and, for a learnt one, the gain its measured trials predict."""
        trials = tuple(e.trial for e in self.evidence)
        current = self.current
        update = {"trials": trials, "state": self.state, "expected_gain": self._expected_gain(current)}
        # the id is asked for often, and hashing is not free
        return current.model_copy(update=update | {"held_as": self.id})

    @property
    def signature(self) -> str:
        """Equal for the same action in the same situation."""
        return signature(self.written)

    def _expected_gain(self, current: Strategy) -> float | None:
        if self.origin == "seed" or current.expected_gain is not None:
            return current.expected_gain
        measured = [e.realised_log_gain for e in self.evidence if not e.estimated]
        return math.exp(statistics.fmean(measured)) if measured else None


def signature(strategy: Strategy) -> str:
    """Name a strategy's situation and action, whatever the words around them."""
    return signature_of(strategy.situation, strategy.kind, strategy.parameters)


def signature_of(situation: Situation, kind: ActionKind, parameters: Mapping[str, Value]) -> str:
    """Name a situation and an action; signatures of schema 1, and of words renamed since, stay what they were."""
    narrower = [f"{name}={value}" for name in ("shapes", "policy") if (value := getattr(situation, name))]
    return content_hash(
        ",".join(sorted(situation.families)),
        ",".join(situation.operators),
        situation.bottleneck or "",
        situation.backend,
        situation.generation or "",
        ",".join(sorted(situation.dtypes)),
        kind,
        repr(sorted(first_parameters(parameters).items())),
        *narrower,
    )
