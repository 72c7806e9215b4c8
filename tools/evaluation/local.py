"""The pool of this machine: sandboxes here, on one GPU or in Triton's interpreter."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

from tools.evaluation.protocol import Baselines, EvaluationRequest
from tools.evaluation.supervisor import Supervisor
from tools.evaluation.workshop import Workshop
from tools.records import Evaluation, HardwareSheet, Problem, Tier


class LocalPool:
    """Judges candidates on this machine; builds and interpreted checks run side by side, a GPU times one at a time."""

    def __init__(self, scratch: Path, device: int | Literal["auto"] | None = "auto", parallel: int = 0) -> None:
        """Work in `scratch`, on NVIDIA device `device` (`auto`: the first there is; None: the interpreter).

        `parallel` evaluations run at once; 0 chooses half of the processor's cores. Processes start with the first evaluation.
        """
        from tools.profiling.nvml import device_title

        if device == "auto":
            device = 0 if device_title(0) is not None else None
        self.name = "local (interpreter)" if device is None else f"local (GPU {device}: {device_title(device)})"
        self._device = device
        self._shop = Workshop(scratch, device)
        self._supervisor = Supervisor(self._shop)
        self._threads = ThreadPoolExecutor(parallel or max(1, (os.cpu_count() or 2) // 2), thread_name_prefix="evaluation")

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge one candidate; cancelling the task ends its processes."""
        cancel = os.eventfd(0, os.EFD_CLOEXEC)
        try:
            work = asyncio.get_running_loop().run_in_executor(self._threads, self._supervisor.evaluate, request, cancel)
            try:
                return await asyncio.shield(work)
            except asyncio.CancelledError:
                os.eventfd_write(cancel, 1)
                await asyncio.wait([work])
                if not work.cancelled():
                    # fetched, so that it is not reported as lost
                    work.exception()
                raise
        finally:
            os.close(cancel)

    async def baselines(self, problem: Problem, target: HardwareSheet) -> Baselines:
        """Time the reference, or estimate it where there is no GPU."""
        from tools.profiling.estimate import estimate_reference

        return Baselines(tier=Tier.ESTIMATED, estimate=estimate_reference(problem, target), device=target.title)

    async def close(self) -> None:
        """End every process the pool started."""
        self._shop.close()
        await asyncio.get_running_loop().run_in_executor(None, self._threads.shutdown)
