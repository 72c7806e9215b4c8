"""The records of the knowledge base: situations, strategies, what was recalled, and what a plan led to."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from tools.records import Action, ActionKind, Bottleneck, OperatorFamily, Record, Verdict, content_hash

SCHEMA = 1
"""Version of `Strategy`; a store of another version is migrated or refused, never guessed at."""


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
    source: str
    """Document, paper or run it comes from."""
    state: StrategyState = StrategyState.SEEDED
    trials: tuple[Trial, ...] = ()

    @property
    def id(self) -> str:
        """Content hash of what the strategy says (not of its record of trials)."""
        return content_hash(self.title, self.situation.model_dump_json(), self.kind, self.lesson)


class Recalled(Record):
    """A strategy that recall brought up, and why."""

    strategy: Strategy
    score: float
    """Rank score, higher is better; its parts are in `why`."""
    why: str
    """E.g. `family softmax, bottleneck excess-traffic, similarity 0.71, 3 of 4 tries gained`."""
    warning: bool = False
    """True where the record says that this did not work here."""


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
