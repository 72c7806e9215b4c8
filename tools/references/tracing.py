"""Tracing a reference in a process of its own, which is ended at its limit: the graph then says why nothing can be generated."""

from __future__ import annotations

from typing import NamedTuple

from tools.codegen import OperatorGraph
from tools.cost.choice import Choice
from tools.logs import telling_part
from tools.problems.mixed_sizes import MIXED
from tools.problems.variants import VARIANTS
from tools.records import HardwareSheet, Problem
from tools.references.graph_text import from_text
from tools.references.jobs import TraceJob
from tools.references.processes import PROCESSES, OverLimitError

TRACE_S = 60.0
"""Limit of tracing a reference at all of its sizes and choosing schedules for it."""


class Traced(NamedTuple):
    """A reference's graph, and the schedules that the cost model chose for it."""

    graph: OperatorGraph
    choices: tuple[Choice, ...] | None
    """For the device that was asked about; None where none was."""


def trace_apart(problem: Problem, sheet: HardwareSheet | None = None, limit_s: float = TRACE_S) -> Traced:
    """Trace `problem` in a process of its own, and have schedules chosen for a device.

    What takes longer than `limit_s` seconds, or ends the process, is a graph that is blocked and says why.
    """
    job = TraceJob(problem=problem, variants=VARIANTS.of(problem), mixed=MIXED.of(problem), sheet=sheet)
    try:
        answer = PROCESSES.ask("trace", job.model_dump_json().encode(), limit_s)
    except OverLimitError:
        return _blocked(problem, f"tracing the reference took longer than {limit_s:g} s, the limit of --trace-timeout")
    if not answer.data:
        said = telling_part(answer.log).rstrip(".")
        return _blocked(problem, f"the process that traced the reference gave no answer: {said} ({answer.ending})")
    graph, choices = from_text(answer.data)
    return Traced(graph, choices if sheet else None)


def _blocked(problem: Problem, reason: str) -> Traced:
    graph = OperatorGraph(
        arguments=(),
        parameters={},
        inputs={},
        nodes=(),
        outputs=(),
        traces=1,
        training=problem.abi.training,
        blocked=(reason,),
        replayable=False,
    )
    return Traced(graph, ())
