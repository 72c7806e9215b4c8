"""Traced references: each problem is traced once a process, whoever asks, beside whatever else is being traced."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future

from tools.codegen import OperatorGraph
from tools.cost.choice import Choice
from tools.records import HardwareSheet, Problem
from tools.references.tracing import TRACE_S, Traced, trace_apart

KEPT = 64
"""Traces kept; the one used longest ago goes first."""

_KEEPING = threading.Lock()
_TRACES: OrderedDict[str, tuple[str, Future[Traced]]] = OrderedDict()
"""By problem: the sheet that schedules were chosen for, and the trace, made or under way."""


def begin_trace(problem: Problem, sheet: HardwareSheet | None = None, limit_s: float = TRACE_S) -> Future[Traced]:
    """Have a problem traced, and schedules chosen for a device, in a process of its own; give back the trace that is under way or made."""
    with _KEEPING:
        known = _TRACES.get(problem.id)
        if known is None:
            known = _TRACES[problem.id] = (_name(sheet), Future())
            arguments = (known[1], problem, sheet, limit_s)
            threading.Thread(target=_trace, args=arguments, name="trace", daemon=True).start()
            while len(_TRACES) > KEPT:
                _TRACES.popitem(last=False)
        _TRACES.move_to_end(problem.id)
        return known[1]


def traced_graph(problem: Problem) -> OperatorGraph:
    """Trace a problem, or give back the trace that was made; call it in a worker thread."""
    return begin_trace(problem).result().graph


def traced_choices(problem: Problem, sheet: HardwareSheet) -> tuple[Choice, ...] | None:
    """The schedules that were chosen where the problem was traced; None where it was traced for another device, or for none."""
    trace = begin_trace(problem, sheet=sheet)
    with _KEEPING:
        same = _TRACES.get(problem.id) == (_name(sheet), trace)
    return trace.result().choices if same else None


def _name(sheet: HardwareSheet | None) -> str:
    return sheet.model_dump_json() if sheet else ""


def _trace(future: Future[Traced], problem: Problem, sheet: HardwareSheet | None, limit_s: float) -> None:
    try:
        future.set_result(trace_apart(problem, sheet, limit_s))
    except BaseException as error:
        with _KEEPING:
            # a machine that failed may be mended: the next one who asks tries again
            _TRACES.pop(problem.id, None)
        future.set_exception(error)
