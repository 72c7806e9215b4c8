"""The lab's one process on a device: it checks and times what our own coder wrote, side by side with nobody."""

from __future__ import annotations

import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.trusted import is_close, load_source, make_model, outputs_of, times_us
from tools.hardware import load_sheet
from tools.records import Problem, Verdict


class Judged(NamedTuple):
    """What became of one source."""

    verdict: Verdict
    times_us: tuple[float, ...] = ()
    note: str = ""
    poisoned: bool = False
    """The process's device context may be broken: nothing more is to be asked of it."""
    seconds: float = 0.0
    """For how long the device was kept busy or waiting."""


def serve(channel: Connection, device: str, target: str, scratch: str) -> None:
    """Answer (problem, source) until the channel ends; an empty source asks for the reference's times instead."""
    bench = Bench(device, target, Path(scratch))
    while True:
        try:
            text, source = channel.recv()
        except EOFError:
            return
        problem, began = Problem.model_validate_json(text), time.monotonic()
        found: Judged | dict[str, tuple[float, ...]]
        found = bench.judge(problem, source)._replace(seconds=time.monotonic() - began) if source else bench.reference(problem)
        channel.send(found)


class Bench:
    """Problems with their inputs and the reference's results, on one device."""

    def __init__(self, device: str, target: str, scratch: Path) -> None:
        """Use `device`, `cuda` (that of the sheet `target`) or `cpu`; sources lie in `scratch`."""
        from tools.evaluation.lead_in import ColdCache, flush_bytes
        from tools.evaluation.reference import allow_tf32

        # as the evaluator has it for every side under the exact policy
        allow_tf32(False)
        self._device = device
        self._scratch = scratch
        self._cold = ColdCache(flush_bytes(load_sheet(target))) if device == "cuda" else None
        self._open: dict[str, tuple[Any, list[Any], list[Any]]] = {}

    def reference(self, problem: Problem) -> dict[str, tuple[float, ...]]:
        """Time eager and, on a GPU, torch.compile; microseconds."""
        import torch

        reference, inputs, _ = self._opened(problem)
        times = {"eager": times_us(lambda: reference.module(*inputs), self._cold)}
        if self._device == "cuda":
            # what was compiled before with other sizes would make this one compile for any size
            torch._dynamo.reset()
            compiled = torch.compile(reference.module)
            times["compile"] = times_us(lambda: compiled(*inputs), self._cold)
        return times

    def judge(self, problem: Problem, source: str) -> Judged:
        """Compare one call with the reference's and time it."""
        reference, inputs, expected = self._opened(problem)
        try:
            model = make_model(load_source(source, self._scratch), problem, reference, self._device)
            found = outputs_of(model, inputs, problem)
            self._wait()
            if not is_close(found, expected):
                return Judged(Verdict.WRONG, note="It is not within the lab's tolerance of eager.")
            return Judged(Verdict.PASS, times_us(lambda: model(*inputs), self._cold))
        except Exception as error:
            note = f"{type(error).__name__}: {str(error)[:300]}"
            try:
                self._wait()
            except Exception:
                return Judged(Verdict.CRASHED, note=note, poisoned=True)
            return Judged(Verdict.CRASHED, note=note)

    def _opened(self, problem: Problem) -> tuple[Any, list[Any], list[Any]]:
        from tools.problems import open_problem

        if problem.id not in self._open:
            reference = open_problem(problem)
            reference.module.to(self._device)
            inputs = reference.inputs(7, self._device)
            self._open[problem.id] = (reference, inputs, reference.outputs(inputs))
        return self._open[problem.id]

    def _wait(self) -> None:
        import torch

        if self._device == "cuda":
            torch.cuda.synchronize()
