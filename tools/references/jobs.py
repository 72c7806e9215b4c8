"""What processes for references are asked, and what they answer."""

from __future__ import annotations

from typing import Literal

from tools.records import HardwareSheet, PrecisionPolicy, Problem, Record


class ReadJob(Record):
    """A problem's file to be read."""

    file: str
    policy: PrecisionPolicy
    entry: str | None = None


class ReadAnswer(Record):
    """A problem with its small variants, or why there is none."""

    problem: Problem | None = None
    variants: tuple[Problem, ...] = ()
    mixed: tuple[Problem, ...] = ()
    """The problem at mixtures of declared sizes, which tell numbers apart and are not judged."""
    notes: tuple[str, ...] = ()
    """What a user should know of it, as `tools.problems.problem_notes` says."""
    failure: Literal["", "random", "unreadable"] = ""
    """random: the reference is no function of its inputs."""
    what: str = ""
    mend: str = ""


class TraceJob(Record):
    """A reference to be traced."""

    problem: Problem
    variants: tuple[Problem, ...] | None
    """None where they are not known yet: they are sought, which runs the reference at many sizes."""
    mixed: tuple[Problem, ...] | None = None
    """The same of mixtures of declared sizes."""
    sheet: HardwareSheet | None
    """The device for which the cost model is to choose schedules; None for none."""


class WriteJob(Record):
    """A reference that Inductor is to write kernels for."""

    problem: Problem
    variants: tuple[Problem, ...]
    sheet: HardwareSheet
    """The device."""
