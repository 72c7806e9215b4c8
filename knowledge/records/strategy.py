"""A strategy: in this situation, this action gave this change; and how recall brings it up."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, field_validator

from knowledge.records.situation import Situation
from knowledge.records.trials import Changes, Scope, Trial, changes_of
from tools.records import ActionKind, Record, content_hash
from tools.records.renamed import Value, present_parameters, present_templates

SCHEMA = 2
"""Version of `Strategy`; an older one is migrated by `knowledge.log.migrate`, a newer one refused, none guessed at."""

TUNING = "tune"
"""Parameter of an action that is carried out by the tuner; what the tuner finds is kept beside the knowledge, by problem and device."""


RECORD = " Record: "
"""Begins what the statistics add to a lesson; the words before it are the author's."""
LONGEST = 900
"""Characters of a lesson; the embedding model cuts longer texts."""


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
    excerpt: str = ""
    """The kernel of the candidate that it was learnt from, cut; it stays on this machine."""
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
