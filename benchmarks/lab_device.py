"""The lab's one process that uses the device: it checks and times what our own coder wrote, side by side with nobody.

No sandbox, no battery, no bracket: for source texts of the built-in coder alone, to compare how it is searched. A result is near the
reference's on one input, within `TOLERANCE`; a time is the median of CUDA events with the L2 cleared before each call.
"""

from __future__ import annotations

import ast
import importlib.util
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from tools.records import Problem, Verdict, content_hash

TOLERANCE = 1e-4
"""Relative L2 distance from eager."""
SAMPLE_MS = 25.0
"""What one thing is timed for, after three calls that are not counted."""
MOST, LEAST = 60, 7
FLUSH_BYTES = 256 << 20
"""More than any L2; read before each call, so that nothing is left to be written back."""
HEAD_START_CYCLES = 600_000


class Judged(NamedTuple):
    """What became of one source."""

    verdict: Verdict
    times_us: tuple[float, ...] = ()
    note: str = ""
    poisoned: bool = False
    """The process's device context may be broken: nothing more is to be asked of it."""


def serve(channel: Connection, device: str, scratch: str) -> None:
    """Answer (problem, source) until the channel ends; an empty source asks for the reference's times instead."""
    bench = Bench(device, Path(scratch))
    while True:
        try:
            text, source = channel.recv()
        except EOFError:
            return
        problem = Problem.model_validate_json(text)
        channel.send(bench.judge(problem, source) if source else bench.reference(problem))


class Bench:
    """Problems with their inputs and the reference's results, on one device."""

    def __init__(self, device: str, scratch: Path) -> None:
        """Use `device`, `cuda` or `cpu`; sources lie in `scratch`."""
        import torch

        self._device = device
        self._scratch = scratch
        self._flush = torch.zeros(FLUSH_BYTES if device == "cuda" else 1, dtype=torch.uint8, device=device)
        self._open: dict[str, tuple[Any, list[Any], list[Any]]] = {}

    def reference(self, problem: Problem) -> dict[str, tuple[float, ...]]:
        """Time eager and, on a GPU, torch.compile; microseconds."""
        import torch

        reference, inputs, _ = self._opened(problem)
        times = {"eager": self._times(lambda: reference.module(*inputs))}
        if self._device == "cuda":
            compiled = torch.compile(reference.module)
            times["compile"] = self._times(lambda: compiled(*inputs))
        return times

    def judge(self, problem: Problem, source: str) -> Judged:
        """Compare one call with the reference's and time it."""
        import torch

        reference, inputs, expected = self._opened(problem)
        try:
            model = self._model(source, problem, reference)
            if not self._is_close(self._outputs(model, inputs, problem), expected):
                return Judged(Verdict.WRONG, note="It is not within the lab's tolerance of eager.")
            return Judged(Verdict.PASS, self._times(lambda: model(*inputs)))
        except Exception as error:
            note = f"{type(error).__name__}: {str(error)[:300]}"
            try:
                self._wait()
            except Exception:
                return Judged(Verdict.CRASHED, note=note, poisoned=True)
            if self._device == "cuda":
                torch.cuda.empty_cache()
            return Judged(Verdict.CRASHED, note=note)

    def _opened(self, problem: Problem) -> tuple[Any, list[Any], list[Any]]:
        from tools.problems import open_problem

        if problem.id not in self._open:
            reference = open_problem(problem)
            reference.module.to(self._device)
            inputs = reference.inputs(7, self._device)
            self._open[problem.id] = (reference, inputs, reference.outputs(inputs))
        return self._open[problem.id]

    def _model(self, source: str, problem: Problem, reference: Any) -> Any:
        path = self._scratch / f"s{content_hash(source)}.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        model = module.ModelNew(*ast.literal_eval(problem.abi.init))
        model.load_state_dict(reference.module.state_dict())
        return model.to(self._device).train(problem.abi.training)

    def _outputs(self, model: Any, inputs: list[Any], problem: Problem) -> list[Any]:
        import torch

        from tools.problems.analysis import flat_outputs

        with torch.no_grad():
            found = flat_outputs(model(*inputs), problem.name)
        self._wait()
        return found

    @staticmethod
    def _is_close(outputs: Sequence[Any], expected: Sequence[Any]) -> bool:
        import torch

        def near(one: Any, other: Any) -> bool:
            # written so that a difference that is not a number counts as too large
            distance = torch.linalg.vector_norm(one.double() - other.double())
            return bool(distance <= TOLERANCE * torch.linalg.vector_norm(other.double()) + 1e-30)

        same = len(outputs) == len(expected)
        return same and all(a.shape == b.shape and near(a, b) for a, b in zip(outputs, expected, strict=True))

    def _times(self, call: Callable[[], Any]) -> tuple[float, ...]:
        import torch

        timed = self._on_device if self._device == "cuda" else _on_host
        with torch.no_grad():
            for _ in range(3):
                call()
            first = sorted(timed(call, 3))[1]
            return timed(call, max(LEAST, min(MOST, int(SAMPLE_MS * 1e3 / (first + 120.0)))))

    def _on_device(self, call: Callable[[], Any], count: int) -> tuple[float, ...]:
        import torch

        pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(count)]
        for start, end in pairs:
            self._flush.sum()
            # a head start for the host: it must have issued every launch before the device is there
            torch.cuda._sleep(HEAD_START_CYCLES)
            start.record()
            call()
            end.record()
        self._wait()
        return tuple(start.elapsed_time(end) * 1e3 for start, end in pairs)

    def _wait(self) -> None:
        import torch

        if self._device == "cuda":
            torch.cuda.synchronize()


def _on_host(call: Callable[[], Any], count: int) -> tuple[float, ...]:
    found = []
    for _ in range(count):
        began = time.perf_counter()
        call()
        found.append((time.perf_counter() - began) * 1e6)
    return tuple(found)
