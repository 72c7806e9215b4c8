"""Traced references: each problem is traced once a process, whoever asks."""

from __future__ import annotations

import threading
from collections import OrderedDict

from tools.codegen import OperatorGraph, trace
from tools.records import Problem

KEPT = 16
"""Graphs kept; the one used longest ago goes first."""

_TRACING = threading.Lock()
"""torch.export is not safe in two threads at once, and several runs may share this process."""
_GRAPHS: OrderedDict[str, OperatorGraph] = OrderedDict()


def traced_graph(problem: Problem) -> OperatorGraph:
    """Trace a problem, or give back the trace that was made."""
    with _TRACING:
        if problem.id not in _GRAPHS:
            _GRAPHS[problem.id] = trace(problem)
            while len(_GRAPHS) > KEPT:
                _GRAPHS.popitem(last=False)
        _GRAPHS.move_to_end(problem.id)
        return _GRAPHS[problem.id]
