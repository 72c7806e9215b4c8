"""A problem as its record has it, and as its source gives it."""

from __future__ import annotations

from tools.records import Problem, Record


class DeriveJob(Record):
    """The problem as its record has it."""

    problem: Problem


class Derived(Record):
    """The problem as its source gives it."""

    problem: Problem | None
    """None where the source cannot be used."""
    variants: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    """What a user should know of it, as `tools.problems.problem_notes` says."""
    refusal: str = ""
    """Why the source cannot be used; empty where it can."""
