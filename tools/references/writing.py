"""Having Inductor write kernels for a reference in a process of its own, which is ended at its limit."""

from __future__ import annotations

from collections.abc import Sequence

from tools.inductor import Written
from tools.logs import telling_part
from tools.records import HardwareSheet, Problem
from tools.references.jobs import WriteJob
from tools.references.processes import PROCESSES, OverLimitError

WRITE_S = 180.0
"""Limit of it. Most operators take one to eight seconds for five sizes, the first of them with what Inductor imports."""


def written_apart(problem: Problem, variants: Sequence[Problem], sheet: HardwareSheet, limit_s: float = WRITE_S) -> Written:
    """Have Inductor write for `problem` on a device, at its own size and its variants'; the answer may say why there is nothing."""
    job = WriteJob(problem=problem, variants=tuple(variants), sheet=sheet)
    try:
        answer = PROCESSES.ask("write", job.model_dump_json().encode(), limit_s)
    except OverLimitError:
        return Written(torch="", refused=f"Inductor took longer than {limit_s:g} s")
    if not answer.data:
        said = telling_part(answer.log).rstrip(".")
        return Written(torch="", refused=f"the process in which Inductor worked gave no answer: {said} ({answer.ending})")
    return Written.model_validate_json(answer.data)
