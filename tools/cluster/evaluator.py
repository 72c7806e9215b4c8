"""An evaluator on a node: answers one question after the other, each as text, and whatever fails there is an answer too."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from tools.cluster.keys import secrets_in
from tools.cluster.records import Facts, Failure, Question, Reply
from tools.cluster.station import Order, Station, code_hash, opened
from tools.errors import KernelwrightError, UserError
from tools.evaluation.protocol import EvaluatorPool
from tools.profiling.software import versions


class Evaluator:
    """Judges on one GPU, or on the processor."""

    def __init__(self, opener: str, order: Order) -> None:
        """Open nothing yet: what fails at that is told by `facts`."""
        self._opener = opener
        self._order = order
        self._station: Station | None = None
        # Ray's workers give way to everybody else, and whoever times must not; without the right to it they go on doing so
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, min(0, os.getpriority(os.PRIO_PROCESS, 0)))
        # one that hangs can be asked where: its log then has the stack of each thread
        faulthandler.register(signal.SIGUSR1)
        self._keys = secrets_in(os.environ)
        for name in self._keys:
            del os.environ[name]

    def facts(self, node: str) -> Facts:
        """Open the station and say what it is."""
        station = self._station = self._station or opened(self._opener, self._order)
        return Facts(
            host=socket.gethostname(),
            node=node,
            device=station.device,
            unit=station.unit,
            code=code_hash(),
            versions=versions("torch", "triton"),
            keys=self._keys,
        )

    async def reply(self, question: Question) -> Reply:
        """Ask the station's pool, or time the calibration kernel."""
        assert self._station is not None
        return await replied(self._station.pool, question, self._station.calibrate)


Calibrate = Callable[[], Awaitable[float]]


async def replied(pool: EvaluatorPool, question: Question, calibrate: Calibrate | None = None) -> Reply:
    """Put a question to a pool; a bad candidate is a verdict, a failing machine is told as such."""
    try:
        return Reply.model_validate(await _asked(pool, question, calibrate))
    except KernelwrightError as error:
        return Reply(failure=_failure(error))
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        return Reply(failure=Failure(what=f"The evaluator failed unexpectedly: {said[:400]}.", mend="Report it with the run."))


async def _asked(pool: EvaluatorPool, question: Question, calibrate: Calibrate | None) -> dict[str, Any]:
    if question.evaluation is not None:
        return {"evaluation": await pool.evaluate(question.evaluation)}
    if question.counters is not None:
        return {"counters": await pool.counters(question.counters)}
    if question.problem is not None and question.target is not None:
        return {"baselines": await pool.baselines(question.problem, question.target)}
    return {"calibration_us": await calibrate() if calibrate else 0.0}


def _failure(error: KernelwrightError) -> Failure:
    return Failure.model_validate({"kind": "user" if isinstance(error, UserError) else "machine", "what": error.what, "mend": error.mend})


def said_failure(error: KernelwrightError) -> str:
    """A failure as the text of a reply."""
    return Reply(failure=_failure(error)).model_dump_json()


def actor_class() -> type:
    """Make the class of Ray's actors: it travels as text of its own, so that a node where kernelwright is missing can say so."""

    class KernelwrightEvaluator:
        def __init__(self, opener: str, order: dict[str, Any]) -> None:
            from importlib import import_module

            try:
                # it also makes `tools` importable under its own name
                import_module("kernelwright")
            except ImportError as error:
                raise RuntimeError(f"kernelwright cannot be imported there ({error})") from None
            from tools.cluster.evaluator import Evaluator
            from tools.cluster.station import Order

            self._evaluator = Evaluator(opener, Order(**order))

        async def host(self) -> str:
            import socket

            return socket.gethostname()

        async def facts(self) -> str:
            import ray

            from tools.cluster.evaluator import said_failure
            from tools.errors import KernelwrightError

            try:
                return self._evaluator.facts(str(ray.get_runtime_context().get_node_id())).model_dump_json()
            except KernelwrightError as error:
                return said_failure(error)

        async def ask(self, question: str) -> str:
            from tools.cluster.records import Question

            return (await self._evaluator.reply(Question.model_validate_json(question))).model_dump_json()

    return KernelwrightEvaluator
