"""An outcome: what one plan led to, which is what memory learns from."""

from __future__ import annotations

from pydantic import Field, field_validator

from knowledge.records.situation import Situation
from tools.records import Action, Record, Verdict
from tools.records.renamed import present_templates


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
    word: str = ""
    """What a model makes of it; no lesson before a second measurement agrees."""
    excerpt: str = ""
    """The kernel that an accepted candidate came to, cut; empty of others."""
    rationale: str = ""
    """Why the planner chose it."""

    @field_validator("region")
    @classmethod
    def _in_todays_words(cls, region: str) -> str:
        return present_templates(region)
