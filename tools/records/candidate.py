"""A candidate and the plan that led to it."""

from __future__ import annotations

from pydantic import Field

from tools.records.action import Action
from tools.records.base import Record, content_hash

ROOT = "root"
"""Id of the reference itself, the parent of every first candidate."""


class Plan(Record):
    """The planner's choice: a parent, one action, why, and which knowledge it rests on."""

    parent: str
    """Candidate id, or `ROOT`."""
    action: Action
    rationale: str
    strategies: tuple[str, ...] = ()
    """Ids of the strategies the choice rests on."""
    predicted_gain: float | None = Field(default=None, gt=0)
    """Expected time of the parent over time of the child; None where the planner makes no prediction."""
    planner: str
    """Who planned: `builtin`, the model's name, or `user` for a kernel that the run starts from."""

    @property
    def id(self) -> str:
        """The same parent and action give the same plan, whoever chose it."""
        return content_hash(self.parent, self.action.id)


class Candidate(Record):
    """One source that claims to solve a problem, with its parent and the action that made it."""

    problem: str
    """Problem id."""
    parent: str
    action: Action
    source: str
    """Python text with Triton kernels, or with CUDA C++ that it builds, a host function and a `ModelNew`."""
    schedule: str | None = None
    """JSON of the built-in coder's schedule; None where the source is free text of a model or a user."""
    coder: str
    """Who wrote it: `builtin`, the model's name, or `user`."""
    repairs: int = 0
    """How many repairs it took to reach this source."""
    notes: tuple[str, ...] = ()
    """What the coder says about it, e.g. which operators it left to the reference."""
    idea: str = ""
    """What its writer says that it does, in a sentence; empty where the action says it."""

    @property
    def id(self) -> str:
        """Content hash of problem and source: the same text is the same candidate."""
        return content_hash(self.problem, self.source)
