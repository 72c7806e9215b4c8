"""Repeats a run: the graph as it is now, with the record where the model's server and the evaluator were."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from agents import build_team
from agents.coder.protocol import Draft
from agents.models import NotRecorded, Recording, Trouble
from agents.models.calls import recorded_calls
from graphs.optimize.execute import Listener, execute
from graphs.replay.comparison import Divergence, Repetition, compare
from graphs.replay.memory import RecordedMemory
from graphs.replay.pool import RecordedPool
from graphs.run.assembly import Shared, assemble
from graphs.run.context import Services
from graphs.run.fork import FORK, fork_of
from graphs.run.records import Delivery
from graphs.run.settings import settings_of
from graphs.run.steering import DUE, STEER, TAKEN, Steer, Taken
from tools.errors import UserError
from tools.records import Candidate, Plan, Problem
from tools.tracing import RunStore
from tools.tracing.store import INHERITED

Evaluate: TypeAlias = Literal["record", "afresh"]
CLOCKED = ("wall_s", "gpu_s")
"""Limits that a repetition reaches at another moment."""


@dataclass
class RepeatedServices(Services):
    """Services whose run ends in the round in which the recorded one ran out of time."""

    rounds: int = 0
    """Rounds after which the recorded run ran out of time; 0 where it did not."""
    ended: str = ""

    def exhausted(self) -> str | None:
        """Name the first budget that is used up; time is used up when it was."""
        done = len({span.subject for span in self.store.spans() if span.node == "learn"})
        return super().exhausted() or (self.ended if self.rounds and done >= self.rounds else None)


async def repeat(record: RunStore, folder: Path, evaluate: Evaluate, listener: Listener = lambda event: None) -> Repetition:
    """Repeat `record`'s run in the new `folder` and compare; UserError for a run that has not ended."""
    delivery = next(iter(record.all("delivery", Delivery).values()), None)
    if delivery is None:
        raise UserError(f"The run {record.meta('run')} has not ended.", f"See it through: kernelwright resume {record.meta('run')}.")
    recording = Recording(recorded_calls(record), record.all("trouble", Trouble))
    store = _copy(record, folder)
    services = _services(store, record, recording, evaluate, delivery)
    found: tuple[Divergence, ...] = ()
    try:
        await execute(services, listener)
    except NotRecorded as other:
        found = (Divergence(kind="evaluation" if " judged" in other.what else "call", what=other.what),)
    made = Repetition(
        run=record.meta("run"),
        plans=len(record.all("plan", Plan)),
        candidates=len(record.all("candidate", Candidate)),
        calls=len(store.calls()),
        divergences=(*found, *compare(record, store)),
        prompts=tuple(recording.changes),
    )
    store.close()
    return made


def _copy(record: RunStore, folder: Path) -> RunStore:
    """Start a run with the record's problem and settings, without its clocks.

    Nothing is paid again, so a price table that is not on this machine is not read; several models in one role are chosen by price too,
    and another choice than the recorded one is a difference.
    """
    settings = settings_of(record)
    budget = settings.budget.model_copy(update=dict.fromkeys(CLOCKED, 0.0))
    prices = settings.team.prices if Path(settings.team.prices).is_file() else ""
    team = settings.team.model_copy(update={"shared": "", "prices": prices})
    settings = settings.model_copy(update={"budget": budget, "team": team, "evaluator": "local", "memory": False})
    store = RunStore.create(folder, {"run": record.meta("run"), "settings": settings.model_dump_json(), "created": record.meta("created")})
    for problem in record.all("problem", Problem).values():
        store.put("problem", problem.id, problem)
        store.put_root(problem.source)
    for name, asked in record.all(STEER, Steer).items():
        if asked.kind not in ("pause", "continue"):
            store.put(STEER, name, asked)
    for when, taken in record.all(TAKEN, Taken).items():
        store.put(DUE, when, taken)
    if fork := fork_of(record):
        store.put(FORK, FORK, fork)
        store.set_meta(INHERITED, record.meta(INHERITED))
    for name, draft in record.all("compiled", Draft).items():
        store.put("compiled", name, draft)
    return store


def _services(store: RunStore, record: RunStore, recording: Recording, evaluate: Evaluate, delivery: Delivery) -> Services:
    memory = RecordedMemory(record)
    known = Shared(pool=RecordedPool(record), memory=memory, variants=()) if evaluate == "record" else Shared(memory=memory)
    opened = assemble(store, known)
    rounds = len({span.subject for span in record.spans() if span.node == "learn"}) if delivery.ended in CLOCKED else 0
    return RepeatedServices(
        run=opened.run,
        settings=opened.settings,
        problem=opened.problem,
        variants=opened.variants,
        sheet=opened.sheet,
        store=store,
        pool=opened.pool,
        team=build_team(opened.settings.team, store, recording=recording),
        memory=opened.memory,
        rounds=rounds,
        ended=delivery.ended,
    )
