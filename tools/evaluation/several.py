"""A pool over several devices: one pool each, a candidate to the device that has least to do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

from tools.cores import usable_cores
from tools.errors import MachineError
from tools.evaluation.local import LocalPool
from tools.evaluation.processes.worker_pool import warm_ahead
from tools.evaluation.protocol import EvaluatorPool
from tools.evaluation.supervisor.timed.compiling import COMPILE_S
from tools.hardware.devices import ALL, choose_devices
from tools.profiling.ncu import Counters
from tools.profiling.nvml import device_title
from tools.records import Baselines, Evaluation, EvaluationRequest, HardwareSheet, Problem

T = TypeVar("T", Evaluation, Baselines)

_BESIDE = 7
"""Evaluations at once for each GPU beyond the one that is timed: they build, are checked, or wait for a compiler.

Of ten seconds that one takes beside others it is alone on the device for one or two.
"""


class SeveralPool:
    """Spreads evaluations over pools of equal devices; all of one evaluation, its baselines too, happens on one device."""

    def __init__(self, name: str, pools: Mapping[str, EvaluatorPool]) -> None:
        """Own `pools`, one a device, by the device's name; one whose machine fails is not used again."""
        self._title = name
        self._places, self._pools = tuple(pools), tuple(pools.values())
        self._busy = [0] * len(self._pools)
        self._out: dict[int, str] = {}

    @property
    def name(self) -> str:
        """The devices, and how many of them were taken out."""
        return f"{self._title}, {len(self._out)} out of use)" if self._out else f"{self._title})"

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge one candidate on the device that has least to do."""
        return await self._on_a_device(lambda pool: pool.evaluate(request))

    async def baselines(self, problem: Problem, target: HardwareSheet) -> Baselines:
        """Time the reference on the device that has least to do."""
        return await self._on_a_device(lambda pool: pool.baselines(problem, target))

    async def counters(self, request: EvaluationRequest) -> Counters:
        """Read the counters of a candidate on the device that has least to do; a device that fails is left to evaluations to find out."""
        usable = [index for index in range(len(self._pools)) if index not in self._out]
        if not usable:
            return Counters(note="No device is left that could count.")
        index = min(usable, key=lambda index: self._busy[index])
        self._busy[index] += 1
        try:
            return await self._pools[index].counters(request)
        finally:
            self._busy[index] -= 1

    async def close(self) -> None:
        """End every pool."""
        await asyncio.gather(*(pool.close() for pool in self._pools))

    async def _on_a_device(self, ask: Callable[[EvaluatorPool], Awaitable[T]]) -> T:
        notes: list[str] = []
        while True:
            index = min((i for i in range(len(self._pools)) if i not in self._out), key=lambda i: self._busy[i], default=None)
            if index is None:
                raise MachineError(f"No device is left: {'; '.join(self._out.values())}", "Mend the machine and start again.")
            self._busy[index] += 1
            try:
                found: T = await ask(self._pools[index])
            except MachineError as error:
                self._out[index] = error.what
                if len(self._out) == len(self._pools):
                    raise
                notes.append(f"Evaluated again on another device: {self._pools[index].name} failed: {error.what}")
            else:
                return found.model_copy(update={"notes": (*found.notes, *notes), "place": self._places[index]})
            finally:
                self._busy[index] -= 1


def open_local(
    scratch: Path, devices: str = ALL, title: str = "", parallel: int = 0, *, max_autotune: bool = False, compile_s: float = COMPILE_S
) -> EvaluatorPool:
    """Open this machine's pool on `devices` (see `choose_devices`); without a GPU the interpreter.

    `parallel` evaluations run at once; 0 chooses by cores and devices. `max_autotune` adds that mode of torch.compile to the baselines;
    torch.compile itself is waited for `compile_s` seconds a problem.
    """
    chosen = choose_devices(devices, title)
    parallel = parallel or capacity(len(chosen))
    if len(chosen) < 2:
        return LocalPool(scratch, chosen[0] if chosen else None, parallel, max_autotune=max_autotune, compile_s=compile_s)
    each = max(1, -(-parallel // len(chosen)))
    name = f"local (GPUs {', '.join(map(str, chosen))}: {device_title(chosen[0])}"
    pools = {f"GPU {index}": LocalPool(scratch, index, each, max_autotune=max_autotune, compile_s=compile_s) for index in chosen}
    return SeveralPool(name, pools)


def capacity(gpus: int, cores: int = 0) -> int:
    """How many evaluations to have under way: half of the cores, this machine's or `cores`, and no more than keep each GPU supplied."""
    half = max(1, (cores or usable_cores()) // 2)
    return half if gpus == 0 else max(2 * gpus, min(half, (1 + _BESIDE) * gpus))


def begin_local(devices: str = ALL) -> None:
    """Begin what a pool of this machine's takes seconds for, before it is opened: its processes import torch and triton meanwhile."""
    for device in choose_devices(devices) or (None,):
        warm_ahead(device)
