"""An evaluator pool that asks a `benchmarks.lab.lab.Lab` in another process."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Client
from typing import Any

from tools.errors import MachineError
from tools.evaluation.supervisor.timed.statistics import sample
from tools.profiling.ncu import Counters
from tools.records import Baselines, Evaluation, EvaluationRequest, HardwareSheet, Problem, Tier

NOTE = "Timed by the lab: no sandbox, one clock."
AT_ONCE = 256
"""Questions that may wait for an answer."""


class LabPool:
    """Passes questions on to a lab."""

    def __init__(self, address: str, title: str) -> None:
        """Ask the lab at `address`, whose device is called `title`."""
        self.name = f"lab ({title})"
        self._address, self._title = address, title
        # asyncio's own threads are as few as the cores
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="lab")

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge one candidate."""
        found = await self._ask(request.problem, request.source, request.stage)
        return Evaluation.model_validate_json(found).model_copy(update={"candidate": request.candidate})

    async def baselines(self, problem: Problem, target: HardwareSheet) -> Baselines:
        """Time the reference."""
        times, notes = await self._ask(problem, "", "")
        samples = {name: sample(values) for name, values in times.items()}
        return Baselines(tier=Tier.IN_PROCESS, samples=samples, device=self._title, notes=(NOTE, *notes))

    async def counters(self, request: EvaluationRequest) -> Counters:
        """Say that none are read."""
        return Counters(note="The lab reads no counters.")

    async def close(self) -> None:
        """Nothing is open; a question that waits ends with its lab."""

    async def _ask(self, problem: Problem, source: str, stage: str) -> Any:
        found = await asyncio.get_running_loop().run_in_executor(self._threads, self._answer, problem.model_dump_json(), source, stage)
        if isinstance(found, Exception):
            raise MachineError(f"The lab failed: {found}", "Look at its output.")
        return found

    def _answer(self, problem: str, source: str, stage: str) -> Any:
        try:
            with Client(self._address, "AF_UNIX") as channel:
                channel.send((problem, source, stage))
                return channel.recv()
        except (OSError, EOFError) as error:
            return error
