"""What a reviewer is told, and what it must give back."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from tools.records import Action, Baselines, Candidate, Evaluation, Plan, Problem, Profile, Record, Verdict


class ReviewCase(Record):
    """One evaluated candidate beside its parent."""

    problem: Problem
    plan: Plan
    candidate: Candidate
    evaluation: Evaluation
    profile: Profile | None
    """None where the candidate did not pass."""
    parent_source: str
    """Empty where the parent is the reference."""
    parent_evaluation: Evaluation | None
    """None where the parent is the reference: the baselines stand for it."""
    baselines: Baselines
    parent_profile: Profile | None = None
    """What limited the parent, so that the lesson can say it; None where it is not known."""
    kept: Action | None = None
    """The plan's action as memory keeps it; None where that is the plan's own."""


class Gain(Record):
    """Parent time over child time, with the 95 % interval that the measurements support."""

    value: float
    low: float
    high: float
    tier: str
    """Tier of both times; a measured and an estimated time are never compared."""


class Check(StrEnum):
    """What a reviewer can ask to be done before its candidate counts; nothing it asks can make a candidate pass."""

    CONFIRM = "confirm"
    """Judged again as at the end of a run: every distribution of inputs, more calls, new seeds, new processes."""


class Review(Record):
    """What the evidence proves, and what to remember."""

    verdict: Verdict
    """Of the candidate judged."""
    accepted: bool
    """True only where the candidate passed and the interval of its gain lies above 1."""
    gain: Gain | None
    """None where the candidate did not pass."""
    reason: str
    """One sentence that cites the evidence."""
    lesson: str
    """One or two sentences for the knowledge base, of what was measured."""
    word: str = ""
    """What a model makes of it, unchecked: memory takes it into a lesson once a second measurement agrees."""
    concerns: tuple[str, ...] = ()
    """Advisory; they never change `accepted` from False to True."""
    checks: tuple[Check, ...] = ()
    """Asked for; an accepted candidate that does not pass one is accepted no more."""
    reviewer: str


class Reviewer(Protocol):
    """Accepts only what the evaluation proves."""

    name: str

    async def review(self, case: ReviewCase) -> Review:
        """Judge one case."""
