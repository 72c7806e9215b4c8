"""What a coder is told, and what it must give back."""

from __future__ import annotations

from typing import Protocol

from pydantic import Field

from agents.records.inspiration import Inspiration
from agents.records.standing import Standing
from knowledge.records import Recalled
from tools.records import Action, Candidate, Evaluation, HardwareSheet, Plan, Problem, Profile, Record


class CodingTask(Record):
    """One atomic edit: this parent, this one action."""

    problem: Problem
    parent: Candidate | None
    """None where the parent is the reference itself."""
    plan: Plan
    profile: Profile
    """Of the parent."""
    sheet: HardwareSheet
    programs: tuple[Inspiration, ...] = ()
    """Other right candidates of the run that the search method wants to be seen, for ideas."""
    doubt: str = ""
    """Why the parent would not be delivered as faster, fast as it may be; empty where that is not known."""
    standing: Standing = Standing()
    """What was tried in this run, and what there is to beat."""
    recalled: tuple[Recalled, ...] = ()
    """What memory brought up for the parent."""
    evaluation: Evaluation | None = None
    """Of the parent; None where it is the reference."""
    versions: dict[str, str] = Field(default_factory=dict)
    """Packages that candidates are built with, where another machine does that; those of this one count for what is not named."""
    swept: bool = True
    """Whether a kernel's numbers are searched once it is right."""


class Draft(Record):
    """A source the coder claims solves the problem."""

    source: str
    schedule: str | None = None
    """JSON of the built-in coder's schedule; None for free text."""
    notes: tuple[str, ...] = ()
    """E.g. which operators were left to the reference, and why."""
    idea: str = ""
    """What its writer says that it does, in a sentence; empty where the action says it."""


class Refusal(Record):
    """The coder cannot do this, and says why; it never guesses."""

    reason: str


class Coder(Protocol):
    """Writes candidates, one action at a time."""

    name: str
    free: bool
    """Whether it takes actions beyond its own `options`."""

    async def begin(self, problem: Problem, sheet: HardwareSheet, trace_s: float) -> None:
        """Make ready what it will need of `problem`, beside other work; tracing the reference is given up after `trace_s` seconds."""

    async def options(self, problem: Problem, parent: Candidate | None, sheet: HardwareSheet) -> tuple[Action, ...]:
        """List the legal actions on this parent; empty where there are none or where any is allowed."""

    async def limits(self, problem: Problem) -> tuple[str, ...]:
        """Say what this coder cannot generate for `problem`, one sentence an operator; empty where it takes on anything."""

    async def write(self, task: CodingTask) -> Draft | Refusal:
        """Apply the task's action to its parent."""

    async def repair(self, task: CodingTask, draft: Draft, evaluation: Evaluation, attempt: int) -> Draft | Refusal:
        """Mend a draft that did not pass; `attempt` counts from 1."""
