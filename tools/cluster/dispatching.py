"""One pool for runs on many nodes: an actor on the agents' machine that keeps every answer under its question's key.

A run that Ray repeats after a node was lost finds there what was answered before, and asks for the rest alone.
"""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

from tools.cluster.member import failed
from tools.cluster.opening import open_ray
from tools.cluster.records import Question, Reply
from tools.cluster.station import OPENER
from tools.errors import MachineError
from tools.profiling.ncu import Counters
from tools.records import Baselines, Evaluation, EvaluationRequest, HardwareSheet, Problem, Record, Verdict, content_hash

ANSWERS = "answers.sqlite3"
_RETRIES = -1


class Wanted(Record):
    """What a dispatcher opens its pool for."""

    address: str
    devices: str
    title: str
    max_autotune: bool
    compile_s: float
    opener: str = OPENER


class Answers:
    """Replies by key in one file, written before they are given; a question in flight is not asked a second time."""

    def __init__(self, file: Path) -> None:
        """Keep them in `file`."""
        file.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(file, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, json TEXT NOT NULL)")
        self._asking: dict[str, asyncio.Future[str]] = {}

    async def given(self, key: str, ask: Any) -> str:
        """The answer to a question, from before or by `ask`."""
        row = self._db.execute("SELECT json FROM answers WHERE key = ?", (key,)).fetchone()
        if row is not None:
            return str(row[0])
        if key not in self._asking:
            self._asking[key] = asyncio.ensure_future(self._asked(key, ask))
        return await asyncio.shield(self._asking[key])

    async def _asked(self, key: str, ask: Any) -> str:
        try:
            reply: Reply = await ask()
            said = reply.model_dump_json()
            if _is_final(reply):
                self._db.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", (key, said))
            return said
        finally:
            del self._asking[key]


def _is_final(reply: Reply) -> bool:
    """Whether asking again could not give another answer: failures of machines go away."""
    return reply.failure is None and (reply.evaluation is None or reply.evaluation.verdict is not Verdict.INFRASTRUCTURE)


def key_of(question: Question) -> str:
    """The same question has the same key; empty for one that is asked anew each time."""
    if question.evaluation is not None:
        return f"evaluation {question.evaluation.key}"
    if question.problem is not None and question.target is not None:
        return f"baselines {content_hash(question.problem.id, question.target.name)}"
    return ""


class Dispatcher:
    """Passes questions on to its pool."""

    def __init__(self, wanted: Wanted, answers: Path) -> None:
        """Open the pool at the first question."""
        self._wanted = wanted
        self._answers = Answers(answers)
        self._pool: Any = None

    async def ask(self, question: Question) -> str:
        """The reply, as text."""
        from tools.cluster.evaluator import replied

        if self._pool is None:
            one = self._wanted
            self._pool = open_ray(
                one.address, one.devices, one.title, max_autotune=one.max_autotune, compile_s=one.compile_s, opener=one.opener
            )

        async def ask() -> Reply:
            return await replied(self._pool, question)

        key = key_of(question)
        return await self._answers.given(key, ask) if key else (await ask()).model_dump_json()

    async def close(self) -> None:
        """End the evaluators."""
        if self._pool is not None:
            await self._pool.close()


class DispatchedPool:
    """An `EvaluatorPool` that asks a dispatcher, from whatever node."""

    name = "Ray, by the bench's dispatcher"

    def __init__(self, handle: Any) -> None:
        """Ask the actor `handle`, of `open_dispatcher`."""
        self.handle = handle

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge one candidate."""
        found = (await self._asked(Question(evaluation=request))).evaluation
        assert found is not None
        return found.model_copy(update={"candidate": request.candidate})

    async def baselines(self, problem: Problem, target: HardwareSheet) -> Baselines:
        """Time the reference, or estimate it."""
        found = (await self._asked(Question(problem=problem, target=target))).baselines
        assert found is not None
        return found

    async def counters(self, request: EvaluationRequest) -> Counters:
        """Read the hardware counters of a candidate."""
        found = (await self._asked(Question(counters=request))).counters
        assert found is not None
        return found

    async def close(self) -> None:
        """End the evaluators."""
        import ray
        from ray.exceptions import RayError

        try:
            await self.handle.close.remote()
        except RayError as error:
            raise MachineError(f"The bench's dispatcher is gone: {type(error).__name__}.", "Repeat the command: it goes on.") from error
        ray.kill(self.handle)

    async def _asked(self, question: Question) -> Reply:
        reply = Reply.model_validate_json(await self.handle.ask.remote(question.model_dump_json()))
        if reply.failure is not None:
            raise failed(reply.failure, "")
        return reply


def open_dispatcher(wanted: Wanted, answers: Path) -> DispatchedPool:
    """Start it beside this process: it keeps its answers in a file here, and Ray starts it again where it dies."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    class KernelwrightDispatcher:
        def __init__(self, wanted: str, answers: str) -> None:
            from importlib import import_module

            # it makes `tools` importable under its own name
            import_module("kernelwright")
            from tools.cluster.dispatching import Dispatcher, Wanted

            self._dispatcher = Dispatcher(Wanted.model_validate_json(wanted), Path(answers))

        async def ask(self, question: str) -> str:
            from tools.cluster.records import Question

            return await self._dispatcher.ask(Question.model_validate_json(question))

        async def close(self) -> None:
            await self._dispatcher.close()

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    kind: Any = ray.remote(KernelwrightDispatcher)
    options = {"num_cpus": 0, "scheduling_strategy": here, "max_restarts": _RETRIES, "max_task_retries": _RETRIES}
    return DispatchedPool(kind.options(**options).remote(wanted.model_dump_json(), str(answers.absolute())))
