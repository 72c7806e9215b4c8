"""The lab's second kind of process: compiles a reference by torch.compile beside the judging, and times it when the device is its own.

Compiling is the host's work, and others are timed meanwhile. Kernels that the first call launches wait for the lock, tuning them too; what
reaches the device without it are copies of parameters and inputs that the compiler itself makes, and eager operators between two graphs.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.lab.device import cold_cache, give_back, said, wait
from benchmarks.lab.device_lock import DeviceLock
from benchmarks.lab.trusted import times_us
from tools.evaluation.trusted.inputs import made_inputs
from tools.evaluation.trusted.reference import DeclaredReference
from tools.evaluation.wire.calls import CallSpec
from tools.records import Problem

Times = tuple[float, ...]


def serve(channel: Connection, device: str, target: str, lock: str) -> None:
    """Answer (problem, call) by two answers until the channel ends: eager's times, then torch.compile's; words where there are none."""
    timer = ReferenceTimer(device, target, DeviceLock(Path(lock)), compiles=device == "cuda")
    while True:
        text, call = channel.recv()
        for answer in timer.times(Problem.model_validate_json(text), call):
            channel.send(answer)


class ReferenceTimer:
    """One reference at a time."""

    def __init__(self, device: str, target: str, lock: DeviceLock, *, compiles: bool) -> None:
        """Time on `device`; where it `compiles` not, torch.compile is left out, and said to be."""
        self._device, self._lock, self._compiles = device, lock, compiles
        self._cold = cold_cache(device, target)

    def times(self, problem: Problem, call: CallSpec) -> Iterator[Times | str]:
        """Yield eager's times and torch.compile's, microseconds; words in place of what could not be timed."""
        with self._lock.room(problem):
            try:
                reference, module, arguments, eager = self._eager(problem, call)
            except Exception as error:
                yield said(error)
                return
            yield eager
            yield self._compiled_or_not(reference, module, arguments)
            del reference, module, arguments
            self._forget()

    def _eager(self, problem: Problem, call: CallSpec) -> tuple[DeclaredReference, Any, list[Any], Times]:
        reference = DeclaredReference(problem, self._device)
        with self._lock.taken():
            module, arguments = reference.prepared(made_inputs(reference, call))
            with reference.declared():
                times = times_us(lambda: module(*arguments), self._cold)
            # compiling takes long, and others need what eager's intermediate results took
            give_back(self._device)
            return reference, module, arguments, times

    def _compiled_or_not(self, reference: DeclaredReference, module: Any, arguments: list[Any]) -> Times | str:
        if not self._compiles:
            return "Nothing is compiled where there is no GPU."
        try:
            return self._compiled(reference, module, arguments)
        except Exception as error:
            return said(error)

    def _compiled(self, reference: DeclaredReference, module: Any, arguments: list[Any]) -> Times:
        import torch

        compiled = torch.compile(module, backend=self._backend)
        with torch.no_grad(), reference.declared():
            # compiles, and launches only when the lock is ours
            compiled(*arguments)
            with self._lock.taken():
                wait(self._device)
                return times_us(lambda: compiled(*arguments), self._cold)

    def _backend(self, graph: Any, inputs: Any) -> Any:
        """Compile as torch.compile does by default; what it makes waits for the lock where that is not ours."""
        from torch._inductor.compile_fx import compile_fx

        made: Any = compile_fx(graph, inputs)

        def run(*values: Any) -> Any:
            if self._lock.is_ours:
                return made(*values)
            with self._lock.taken():
                outputs = made(*values)
                wait(self._device)
                return outputs

        return run

    def _forget(self) -> None:
        """Drop what was compiled: with other sizes than before torch would compile the next one for any size."""
        import torch

        torch._dynamo.reset()
        gc.collect()
        with self._lock.taken():
            give_back(self._device)
