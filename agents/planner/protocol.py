"""What a planner is told, and what it must give back."""

from __future__ import annotations

from typing import Protocol

from pydantic import Field

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


class Inspiration(Record):
    """Another candidate that the search method wants planner and coder to see."""

    candidate: str
    speedup: float
    """Best baseline time over its time."""
    steps: tuple[Action, ...]
    """The actions that led to it from the reference, the first one first."""
    mate: bool = False
    """Whether it is a second parent: its steps are worth taking over."""
    diverse: bool = False
    """Whether it is shown because its strategy differs, not because it is fast."""
    time_us: float | None = None
    tier: str = ""
    """How far that time can be trusted."""
    bottleneck: str = ""
    """As its profile has it; empty where there is none."""
    source: str = ""
    """For the coder; the planner is shown its steps."""

    @property
    def part(self) -> str:
        """Why it is shown."""
        return "a second parent" if self.mate else "a program of another strategy" if self.diverse else "a leading program"


class Expectation(Record):
    """What the cost model says of one option, before anything ran; estimated, whatever the parent's time is."""

    words: str
    """A clause for people."""
    gain: float | None = None
    """Modelled time of the parent over that of the child; None where the model does not know one of them."""
    made: str = ""
    """Of a choice of the model: what it makes in words, as memory knows it."""


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
    kinds: tuple[ActionKind, ...] = ()
    """The search method's constraint: the action must be of one of these; empty means any."""
    regions: tuple[str, ...] = ()
    """The search method's constraint: the action must apply to one of these; empty means any."""
    inspirations: tuple[Inspiration, ...] = ()
    expected: dict[str, Expectation] = Field(default_factory=dict)
    """By id of an option: what the cost model says of it; options it cannot tell from the parent are left out."""

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
