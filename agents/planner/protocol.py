"""What a planner is told, and what it must give back."""

from __future__ import annotations

from typing import Protocol

from pydantic import Field

from agents.records.expectation import Expectation
from agents.records.inspiration import Inspiration
from agents.records.standing import Standing
from knowledge.records import Recalled
from tools.records import Action, ActionKind, Against, HardwareSheet, Plan, Problem, Profile, Record, Verdict


class Tried(Record):
    """An action already tried on this parent."""

    action: Action
    verdict: Verdict | None
    """None where the coder refused."""
    gain: float | None
    """Parent time over child time; None where it failed."""
    reason: str
    """The reviewer's sentence about it, or the coder's."""


class Briefing(Record):
    """All that a planner sees of one parent."""

    problem: Problem
    parent: str
    """Candidate id, or ROOT."""
    parent_source: str
    profile: Profile
    options: tuple[Action, ...]
    """What the coder says it can do to this parent; empty where the coder can do anything (a language model)."""
    free: bool
    """Whether actions beyond `options` are allowed: the coder is a language model."""
    tried: tuple[Tried, ...]
    recalled: tuple[Recalled, ...]
    sheet: HardwareSheet
    speedup: float
    """Best baseline time over the parent's time; 1.0 for ROOT."""
    doubt: str = ""
    """Why the parent would not be delivered as faster, fast as it may be; empty where that is not known."""
    kinds: tuple[ActionKind, ...] = ()
    """The search method's constraint: the action must be of one of these; empty means any."""
    regions: tuple[str, ...] = ()
    """The search method's constraint: the action must apply to one of these; empty means any."""
    inspirations: tuple[Inspiration, ...] = ()
    expected: dict[str, Expectation] = Field(default_factory=dict)
    """By id of an option: what the cost model says of it; options it cannot tell from the parent are left out."""

    standing: Standing = Standing()
    """What was tried in this run, with times, and what there is to beat."""
    made_of: dict[str, str] = Field(default_factory=dict)
    """By region of the parent: what it runs, in words."""
    begun: int = 0
    """Designs of a model's own that this round has planned already, so that each has its number."""
    against: Against = "better"
    """What a kernel has to be faster than to be delivered."""

    def allows(self, action: Action) -> bool:
        """Whether an action keeps the search method's constraint."""
        return (not self.kinds or action.kind in self.kinds) and (not self.regions or action.region in self.regions)


class Planner(Protocol):
    """Turns a briefing into plans of one action each."""

    name: str

    async def plan(self, briefing: Briefing, count: int) -> tuple[Plan, ...]:
        """Return at most `count` plans with distinct actions not yet tried; none where nothing is left that is worth trying."""
