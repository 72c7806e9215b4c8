"""Where a run's wall time went, from the stretches that were measured while it ran."""

from __future__ import annotations

from agents.models.calls import recorded_calls
from graphs.run.works import COMMAND
from tools.records import Record
from tools.tracing import RunStore
from tools.tracing.work import Share, Work, shares

ORDER = (
    "evaluation",
    "inspection",
    "counters",
    "model calls",
    "baseline timing",
    "baseline queue",
    "baseline room",
    "baseline compile",
    "baseline start",
    "admission",
    "tracing",
    "memory",
    "evaluator start",
    "reading the file",
    "planning",
    "writing",
    "reviewing",
    "learning",
    "profiling",
    "delivering",
    "start",
)
"""What a moment is put down to where several were under way: first what the others were waiting for."""
REST = "other"
_NODES = {
    "plan": "planning",
    "recall": "planning",
    "write": "writing",
    "repair": "writing",
    "tune": "writing",
    "review": "reviewing",
    "learn": "learning",
    "profile": "profiling",
    "measure": "profiling",
    "confirm": "delivering",
}


class Wall(Record):
    """The wall time of a run, from the command on, and what it was spent on."""

    seconds: float
    shares: dict[str, Share]


def wall(store: RunStore) -> Wall:
    """Add up what was measured: the command's start, its sessions, nodes, works and model calls."""
    sessions = store.sessions()
    if not sessions:
        return Wall(seconds=0.0, shares={})
    began = min(float(store.meta(COMMAND) or sessions[0][0]), sessions[0][0])
    works = [Work(what="start", started=began, ended=sessions[0][0]), *store.all("work", Work).values(), *_nodes(store), *_calls(store)]
    within = [(began, sessions[0][1]), *sessions[1:]]
    return Wall(seconds=sum(end - begin for begin, end in within), shares=shares(works, within, ORDER, REST))


def _nodes(store: RunStore) -> list[Work]:
    """What nodes did by themselves, where nothing finer was measured in them."""
    return [
        Work(what=_NODES[span.node], started=span.started, ended=span.ended)
        for span in store.spans()
        if span.node in _NODES and span.ended is not None
    ]


def _calls(store: RunStore) -> list[Work]:
    return [
        Work(what="model calls", started=ended - call.seconds, ended=ended)
        for key, call in recorded_calls(store).items()
        if (ended := store.called(key)) and call.source == "server"
    ]
