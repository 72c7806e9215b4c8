"""Reading a problem's file in a process of its own: user code that crashes, hangs or fills memory costs its own problem alone."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tools.errors import UserError
from tools.evaluation.processes.child import CancelledError
from tools.logs import telling_part
from tools.problems import problem_notes, small_variants
from tools.problems.mixed_sizes import MIXED
from tools.problems.variants import VARIANTS
from tools.records import PrecisionPolicy, Problem, ProblemForm
from tools.references.jobs import ReadAnswer, ReadJob
from tools.references.processes import PROCESSES, OverLimitError

READ_S = 900.0
"""A file that is not read in this time is given up. Most of KernelBench's take less than a second; its recurrent networks, whose small
variants are sought step by step, took up to three minutes on two crowded cores."""


class Read(NamedTuple):
    """A problem, its small variants, and what a user should know of it."""

    problem: Problem
    variants: tuple[Problem, ...]
    notes: tuple[str, ...]


_KEPT = 256
_READ: dict[str, ReadAnswer] = {}
"""What was read, by problem, so that no problem is read twice in a process."""


def read_apart(file: Path, policy: PrecisionPolicy, entry: str | None = None, limit_s: float = READ_S, cancel: int = -1) -> ReadAnswer:
    """Read a problem's file in a process of its own, unless `cancel` turns readable; what is wrong with it is in the answer."""
    job = ReadJob(file=str(file.absolute()), policy=policy, entry=entry)
    return _ask("read", job.model_dump_json().encode(), file.name, limit_s, cancel)


def read_problem(file: Path, policy: PrecisionPolicy, entry: str | None = None) -> Read:
    """The same; what is wrong with the file raises UserError."""
    return _demanded(read_apart(file, policy, entry))


def read_again(problem: Problem) -> Read:
    """Look for a problem's variants and notes in a process of its own, or give back what was found; UserError where it does not run."""
    if problem.form is ProblemForm.EXPORTED and problem.id not in _READ:
        return Read(problem, small_variants(problem), problem_notes(problem))
    return _demanded(_READ.get(problem.id) or _ask("vary", problem.model_dump_json().encode(), problem.name, READ_S))


def _ask(phase: str, job: bytes, title: str, limit_s: float, cancel: int = -1) -> ReadAnswer:
    try:
        answer = PROCESSES.ask(phase, job, limit_s, cancel)
    except CancelledError:
        return ReadAnswer(failure="unreadable", what=f"{title} was not read to its end.", mend="Begin again.")
    except OverLimitError:
        return ReadAnswer(failure="unreadable", what=f"{title} was not read within {limit_s:.0f} s.", mend="Choose smaller sizes.")
    if not answer.data:
        said = telling_part(answer.log) or answer.ending
        what = f"{title} ended the process that read it: a crash, or too little memory ({said})."
        return ReadAnswer(failure="unreadable", what=what, mend="Run the file by itself to see why.")
    found = ReadAnswer.model_validate_json(answer.data)
    if found.problem is not None:
        _keep(found.problem, found)
    return found


def _keep(problem: Problem, found: ReadAnswer) -> None:
    if len(_READ) >= _KEPT:
        _READ.clear()
    _READ[problem.id] = found
    VARIANTS.keep(problem, found.variants)
    MIXED.keep(problem, found.mixed)


def _demanded(found: ReadAnswer) -> Read:
    if found.problem is None:
        raise UserError(found.what, found.mend)
    return Read(found.problem, found.variants, found.notes)
