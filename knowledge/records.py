"""The records of the knowledge base: situations, strategies, what was recalled, and what a plan led to."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

from pydantic import Field, field_validator

from tools.records import Action, ActionKind, Bottleneck, OperatorFamily, Record, Tier, Verdict, content_hash
from tools.records.renamed import Value, present_parameters, present_templates

SCHEMA = 2
"""Version of `Strategy`; an older one is migrated by `knowledge.migrate`, a newer one refused, none guessed at."""

TUNING = "tune"
"""Parameter of an action that is carried out by the tuner; what the tuner finds is kept beside the knowledge, by problem and device."""

_NAMED = ("families", "operators", "bottleneck", "backend", "generation", "dtypes", "summary")
"""Fields of a situation that name a strategy, in the order of schema 1: ids outlive schemas."""


class Situation(Record):
    """Where a strategy applies: typed filters, and words for the vectors."""

    families: tuple[OperatorFamily, ...]
    """Heaviest first."""
    operators: tuple[str, ...] = ()
    """ATen operators of the problem, in order, without repeats."""
    bottleneck: Bottleneck | None = None
    """None where a strategy applies whatever the bottleneck."""
    backend: str = "triton"
    """`triton` or `cuda`."""
    generation: str | None = None
    """Hardware generation (`hopper`); None where it applies to any."""
    dtypes: tuple[str, ...] = ()
    summary: str = ""
    """One or two sentences of plain words: this is what is embedded."""
    graph: str = ""
    """Signature of the operator graph: hash of its ATen operators in order, repeats included; empty where it applies to any."""
    shapes: str = ""
    """Class of the shapes, e.g. `many-short` rows (`knowledge.situation`); empty where it applies to any."""
    policy: str = ""
    """Name of the precision policy; empty where it applies to any."""
    device: str = ""
    """Hardware sheet; empty where it applies to any."""
    figures: dict[str, float] = Field(default_factory=dict)
    """The profile's figures behind the bottleneck, by name; they describe and never name a situation."""

    @property
    def start(self) -> float | None:
        """Share of the roofline floor that has been reached; None where it is not known."""
        share = self.figures.get("floor_share")
        return share if share is not None and 0 < share < math.inf else None

    @property
    def named(self) -> tuple[str, ...]:
        """What of it names a strategy: the fields of schema 1, then those added since where they restrict anything."""
        kept = {name: value for name, value in self.model_dump(mode="json").items() if name in _NAMED}
        first = json.dumps(kept, separators=(",", ":"), ensure_ascii=False)
        return (first, *(f"{name}={value}" for name in ("graph", "shapes", "policy") if (value := getattr(self, name))))


class StrategyState(StrEnum):
    """How much an entry rests on."""

    SEEDED = "seeded"
    """Curated; no measurement of ours yet."""
    OBSERVED = "observed"
    CONFIRMED = "confirmed"
    """Gained in at least three tries."""
    CONTRADICTED = "contradicted"
    """Tried and mostly did not gain."""
    RETIRED = "retired"


class Trial(Record):
    """One time a strategy was followed."""

    run: str
    candidate: str
    verdict: Verdict
    gain: float | None
    """Parent time over candidate time; None where there was none (it failed)."""
    tier: str
    """Tier of the times behind `gain`, `estimated` included: never mixed with measured ones."""
    device: str
    """Device timed, or target estimated for."""
    versions: dict[str, str] = Field(default_factory=dict)
    """Of torch, triton and the driver; empty in trials of schema 1."""
    policy: str = ""
    """Name of the precision policy it was judged under; empty in trials of schema 1."""
    error_cost: float | None = None
    """Worst relative error over the reference's own, both against float64; None where nothing was judged."""
    gpu_s: float = 0.0
    """What the evaluation cost."""


class Changes(Record):
    """The measured change of a strategy over its trials; estimated gains only where nothing was measured."""

    tries: int
    passes: int
    basis: str
    """`measured`, `estimated`, or `none`."""
    low: float | None
    """First quartile of the gains; the smallest of fewer than four."""
    median: float | None
    high: float | None
    """Third quartile; the largest of fewer than four."""
    failures: dict[str, int]
    """Verdicts of the tries that did not pass."""
    error_cost: float | None
    """Median over the trials that were judged."""


class Scope(Record):
    """What a strategy's evidence covers."""

    devices: tuple[str, ...]
    versions: dict[str, tuple[str, ...]]
    policies: tuple[str, ...]


class Strategy(Record):
    """In this situation, this action, gave this change."""

    schema_version: int = SCHEMA
    title: str
    situation: Situation
    kind: ActionKind
    parameters: dict[str, bool | int | float | str] = Field(default_factory=dict)
    """Parameters that worked or are advised; may be empty."""
    lesson: str
    """What to do, why, and when not to: a short paragraph."""
    expected_gain: float | None = Field(default=None, gt=0)
    """Predicted parent time over child time; None where the source gives no figure."""
    calibrated: bool = False
    """Whether `expected_gain` was rewritten from measured outcomes since."""
    region: str = ""
    """Kind of region it changes (`rows`, `matmul`, `library`); empty for any."""
    held_as: str = ""
    """Id in its store where its words were rewritten since; empty where the id follows from the words."""
    source: str
    """Document, paper or run it comes from."""
    state: StrategyState = StrategyState.SEEDED
    trials: tuple[Trial, ...] = ()

    @field_validator("parameters")
    @classmethod
    def _parameters_in_todays_words(cls, parameters: dict[str, Value]) -> dict[str, Value]:
        return present_parameters(parameters)

    @field_validator("region")
    @classmethod
    def _region_in_todays_words(cls, region: str) -> str:
        return present_templates(region)

    @property
    def id(self) -> str:
        """Content hash of what the strategy said when it was written (not of its record of trials)."""
        return self.held_as or content_hash(self.title, *self.situation.named, self.kind, self.lesson)

    @property
    def observed_gain(self) -> float | None:
        """Median measured gain of its trials that passed; None where nothing was measured."""
        changes = self.changes
        return changes.median if changes.basis == "measured" else None

    @property
    def is_request(self) -> bool:
        """Whether its action asks the tuner for trials: that says how long was sought and not what was found, so it is no advice."""
        return TUNING in self.parameters

    @property
    def changes(self) -> Changes:
        """Distribution of the change over its trials."""
        return changes_of(self.trials)

    @property
    def scope(self) -> Scope:
        """Devices, versions and policies of its trials."""
        names = dict.fromkeys(name for trial in self.trials for name in trial.versions)
        return Scope(
            devices=tuple(dict.fromkeys(trial.device for trial in self.trials)),
            versions={name: tuple(dict.fromkeys(t.versions[name] for t in self.trials if name in t.versions)) for name in names},
            policies=tuple(dict.fromkeys(trial.policy for trial in self.trials if trial.policy)),
        )

    @property
    def provenance(self) -> tuple[str, ...]:
        """Runs and candidates it rests on, as `run/candidate`."""
        return tuple(f"{trial.run}/{trial.candidate}" for trial in self.trials)


class Recalled(Record):
    """A strategy that recall brought up, and why."""

    strategy: Strategy
    score: float
    """Rank score, higher is better; its parts are in `why`."""
    why: str
    """E.g. `family softmax, bottleneck excess-traffic, similarity 0.71, 3 of 4 tries gained`."""
    warning: bool = False
    """True where the record says that this did not work here."""
    foretold: float | None = None
    """Gain that a plan which rests on it is to predict, by what each trial weighs here and now; None where nothing says so."""


class Outcome(Record):
    """What one plan led to: what memory learns from. Keyed by run and plan, so that learning it twice changes nothing."""

    run: str
    plan: str
    """Plan id."""
    situation: Situation
    action: Action
    candidate: str
    verdict: Verdict
    gain: float | None
    """Parent time over child time; None where the candidate did not pass."""
    predicted_gain: float | None
    tier: str
    device: str
    accepted: bool
    lesson: str
    cited: tuple[str, ...]
    """Strategies the plan says it rests on."""
    recalled: tuple[str, ...]
    """Strategies that were shown to the planner."""
    versions: dict[str, str] = Field(default_factory=dict)
    region: str = ""
    """Kind of region the action changed."""
    error_cost: float | None = None
    """Worst relative error over the reference's own."""
    gpu_s: float = 0.0
    rationale: str = ""
    """Why the planner chose it."""

    @field_validator("region")
    @classmethod
    def _in_todays_words(cls, region: str) -> str:
        return present_templates(region)


def changes_of(trials: Sequence[Trial]) -> Changes:
    """Sum up trials; the gains of measured ones, or of estimated ones where nothing was measured."""
    passed = [t for t in trials if t.verdict is Verdict.PASS and t.gain]
    measured = [t.gain for t in passed if t.tier != Tier.ESTIMATED and t.gain]
    gains = measured or [t.gain for t in passed if t.gain]
    low, median, high = _spread(gains)
    errors = [t.error_cost for t in trials if t.error_cost is not None]
    return Changes(
        tries=len(trials),
        passes=sum(t.verdict is Verdict.PASS for t in trials),
        basis="measured" if measured else "estimated" if gains else "none",
        low=low,
        median=median,
        high=high,
        failures=dict(Counter(t.verdict.value for t in trials if t.verdict is not Verdict.PASS)),
        error_cost=statistics.median(errors) if errors else None,
    )


def _spread(gains: list[float]) -> tuple[float | None, float | None, float | None]:
    if not gains:
        return None, None, None
    if len(gains) < 4:
        return min(gains), statistics.median(gains), max(gains)
    low, middle, high = statistics.quantiles(gains, n=4, method="inclusive")
    return low, middle, high
