"""The pool of this machine: sandboxes here, on one GPU or in Triton's interpreter."""

from __future__ import annotations

import asyncio
import copy
import os
import sys
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Literal, Self, TypeVar

from tools.cores import usable_cores
from tools.evaluation.places import Places
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.evaluation.supervisor.supervisor import Builds, Supervisor
from tools.evaluation.supervisor.timed.compiling import COMPILE_S
from tools.evaluation.weighted import baselines_of_shapes, evaluate_shapes
from tools.evaluation.wire.defences import Defences
from tools.evaluation.wire.jobs.derive import Derived
from tools.hardware.devices import first_device
from tools.profiling.ncu import Counters
from tools.profiling.nvml import device_title
from tools.records import Baselines, Evaluation, EvaluationRequest, HardwareSheet, Problem

T = TypeVar("T")


_BASELINES = 32
"""Problems whose baselines are begun at once, at most: more than a bench has in flight."""
_BESIDES = 2
"""Threads for what is asked beside evaluations, counters among it."""
_SWITCH_S = 1e-4
"""How long another thread of this process may compute while one that talks to a runner waits: a timing is hundreds of short messages.

Beside three threads that compute, one message and its answer took 28 ms with Python's 5 ms, and 1.1 ms with this (two cores).
"""


def evaluations_at_once(cores: int, *, gpu: bool) -> int:
    """Choose half of the cores: sizes are checked side by side, too. Without a GPU two keep two cores busy where one size takes long."""
    return max(1 if gpu else min(cores, 2), cores // 2)


class LocalPool:
    """Judges candidates on this machine; builds and interpreted checks run side by side, a GPU times one at a time."""

    def __init__(
        self,
        scratch: Path,
        device: int | Literal["auto"] | None = "auto",
        parallel: int = 0,
        *,
        wary: bool = False,
        max_autotune: bool = False,
        compile_s: float = COMPILE_S,
        builds: Builds | None = None,
    ) -> None:
        """Work in `scratch`, on NVIDIA device `device` (`auto`: the first that is visible; None: the interpreter).

        `parallel` evaluations run at once; 0 has `evaluations_at_once` choose. One that was timed, and is only to be judged, is none of
        them. Processes start with the first evaluation.
        A `wary` pool runs the reference inside walls too: for a problem that a stranger wrote. With `max_autotune` that mode of
        torch.compile is a baseline as well, which takes minutes of compiling a problem. torch.compile itself is waited for `compile_s`
        seconds a problem, and joins when it comes. `builds` compiles candidates elsewhere.
        """
        if device == "auto":
            device = first_device()
        self.name = "local (interpreter)" if device is None else f"local (GPU {device}: {device_title(device)})"
        self._device = device
        self._workers = WorkerPool(scratch, device, wary=wary)
        parallel = parallel or evaluations_at_once(usable_cores(), gpu=device is not None)
        self._supervisor = Supervisor(self._workers, max_autotune=max_autotune, compile_s=compile_s, builds=builds)
        if device is not None:
            sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_S))
        # a baseline waits for a compiler, and takes no evaluation's place meanwhile
        self._waiting = ThreadPoolExecutor(_BASELINES, thread_name_prefix="baselines")
        self._places = Places(parallel)
        # who has been timed has left its place, and waits for the oracle
        self._threads = ThreadPoolExecutor(2 * parallel + _BESIDES, thread_name_prefix="evaluation")

    def weakened(self, off: Defences) -> Self:
        """Give a view of this pool with defences switched off, to test that each is needed.

        Its evaluations name them in `weakened`, and are no evidence of anything. Close the pool itself, not the view.
        """
        twin = copy.copy(self)
        twin._workers = self._workers.weakened(off)
        twin._supervisor = self._supervisor.weakened(twin._workers)
        return twin

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge one candidate, at every shape of its problem; cancelling the task ends its processes."""
        return await (evaluate_shapes(self._evaluate, request) if request.problem.shapes else self._evaluate(request))

    async def _evaluate(self, request: EvaluationRequest) -> Evaluation:
        async with self._places.taken(request.problem.id) as place:
            found = await self._run(partial(self._supervisor.evaluate, request, timed=place.leave))
        phases = {"place": place.waited_s, **found.phase_seconds}
        return found.model_copy(update={"seconds": found.seconds + place.waited_s, "phase_seconds": phases})

    async def _run(self, work_on: Callable[[int], T], threads: Executor | None = None) -> T:
        """Run blocking work in a thread; where the task is cancelled, have the work give up, and wait until it has."""
        cancel = os.eventfd(0, os.EFD_CLOEXEC)
        try:
            work = asyncio.get_running_loop().run_in_executor(threads or self._threads, work_on, cancel)
            # fetched in any case, so that it is not reported as lost
            work.add_done_callback(lambda done: done.cancelled() or done.exception())
            try:
                return await asyncio.shield(work)
            except asyncio.CancelledError:
                os.eventfd_write(cancel, 1)
                await asyncio.wait([work])
                raise
        finally:
            os.close(cancel)

    async def baselines(self, problem: Problem, target: HardwareSheet) -> Baselines:
        """Time the reference at every shape of the problem, or estimate it where there is no GPU."""

        async def of(one: Problem) -> Baselines:
            self._places.hear_of(one.id)
            return await self._run(partial(self._supervisor.baselines, one, target), self._waiting)

        return await (baselines_of_shapes(of, problem) if problem.shapes else of(problem))

    async def counters(self, request: EvaluationRequest) -> Counters:
        """Read the hardware counters of one call of a candidate, at the first shape of its problem."""
        if request.problem.shapes:
            request = request.model_copy(update={"problem": request.problem.at(request.problem.shapes[0])})
        return await self._run(partial(self._supervisor.counters, request))

    async def calibrate(self) -> float:
        """Time the calibration kernel, nobody else being on the device; microseconds, 0 without a GPU."""
        return await self._run(self._supervisor.calibrate)

    async def derive(self, problem: Problem) -> Derived:
        """Read a problem's ABI, work and small variants anew out of its source."""
        return await self._run(partial(self._supervisor.derive, problem))

    async def close(self) -> None:
        """End every process the pool started."""
        await asyncio.get_running_loop().run_in_executor(None, self._close)

    def _close(self) -> None:
        # evaluations in flight end with the processes they talk to; what they leave goes with the second call
        self._workers.close()
        self._threads.shutdown()
        self._waiting.shutdown()
        self._supervisor.close()
        self._workers.close()
