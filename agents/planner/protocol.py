"""What a planner is told, and what it must give back."""

from __future__ import annotations

from typing import Protocol

from knowledge.records import Recalled
from tools.records import Action, HardwareSheet, Plan, Problem, Profile, Record, Verdict


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


class Planner(Protocol):
    """Turns a briefing into plans of one action each."""

    name: str

    async def plan(self, briefing: Briefing, count: int) -> tuple[Plan, ...]:
        """Return at most `count` plans with distinct actions not yet tried; none where nothing is left that is worth trying."""
