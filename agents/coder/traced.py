"""Traced references: each problem is traced once a process, whoever asks."""

from __future__ import annotations

import threading
from collections import OrderedDict

from tools.codegen import OperatorGraph, trace
from tools.native import TURN
from tools.records import Problem

KEPT = 16
"""Graphs kept; the one used longest ago goes first."""

_KEEPING = threading.Lock()
_GRAPHS: OrderedDict[str, OperatorGraph] = OrderedDict()


def traced_graph(problem: Problem) -> OperatorGraph:
    """Trace a problem, or give back the trace that was made, which waits for nobody."""
    kept = _kept(problem)
    if kept is not None:
        return kept
    with TURN:
        # another thread may have been first
        return _kept(problem) or _keep(problem, trace(problem))


def _kept(problem: Problem) -> OperatorGraph | None:
    with _KEEPING:
        if problem.id in _GRAPHS:
            _GRAPHS.move_to_end(problem.id)
        return _GRAPHS.get(problem.id)


def _keep(problem: Problem, graph: OperatorGraph) -> OperatorGraph:
    with _KEEPING:
        _GRAPHS[problem.id] = graph
        while len(_GRAPHS) > KEPT:
            _GRAPHS.popitem(last=False)
        return graph
