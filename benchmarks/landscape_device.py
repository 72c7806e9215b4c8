"""The device's part of recording a landscape: runs a schedule once and holds it against eager, or times it with the L2 cleared."""

from __future__ import annotations

import ast
import importlib.util
import os
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tools.problems import Reference, open_problem
from tools.records import Problem, Verdict, content_hash

TOLERANCE = 1e-4
"""Relative L2 difference from eager up to which a schedule counts as right here; the evaluator is far stricter."""
SAMPLE_MS = 25.0
FLUSH_BYTES = 256 * 2**20
POISONED = "poisoned"
"""What a worker says whose device context an earlier kernel broke: the task is given to another."""

_broken = False
_opened: dict[str, tuple[Reference, list[Any], Any]] = {}


def check(problem: Problem, source: str) -> tuple[str, dict[str, float]]:
    """In a worker: run one source once and compare it with eager; an empty source warms torch.compile's cache."""
    global _broken  # noqa: PLW0603 - a worker's context is broken for good
    if _broken:
        return POISONED, {}
    import torch

    try:
        reference, inputs, expected = open_here(problem)
        if not source:
            with torch.no_grad():
                torch.compile(reference.module)(*inputs)
            torch.cuda.synchronize()
            return Verdict.PASS, {}
        module = _load(source)
        seen = _watch(module)
        outputs = _call(_model(module, problem, reference), inputs, problem)
        torch.cuda.synchronize()
        return (Verdict.PASS if _close(outputs, expected) else Verdict.WRONG), _facts(seen)
    except Exception as error:
        verdict = Verdict.BUILD_FAILED if "triton" in type(error).__module__ else Verdict.CRASHED
        try:
            torch.cuda.synchronize()
        except Exception:
            _broken = True
        return verdict, {}


def open_here(problem: Problem) -> tuple[Reference, list[Any], Any]:
    """Open the reference on the GPU with inputs and outputs; a process keeps the last problem's."""
    if problem.id not in _opened:
        _opened.clear()
        reference = open_problem(problem)
        reference.module.to("cuda")
        inputs = reference.inputs(7, "cuda")
        _opened[problem.id] = (reference, inputs, reference.outputs(inputs))
    return _opened[problem.id]


def _load(source: str) -> Any:
    folder = Path(tempfile.gettempdir()) / f"landscape-{os.getpid()}"
    folder.mkdir(exist_ok=True)
    path = folder / f"s{content_hash(source)}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_model(source: str, problem: Problem, reference: Reference) -> Any:
    """Load a source and make its model, with the reference's parameters, on the GPU."""
    return _model(_load(source), problem, reference)


def _model(module: Any, problem: Problem, reference: Reference) -> Any:
    model = module.ModelNew(*ast.literal_eval(problem.abi.init))
    model.load_state_dict(reference.module.state_dict())
    return model.to("cuda").train(problem.abi.training)


def _call(model: Any, inputs: list[Any], problem: Problem) -> list[Any]:
    import torch

    from tools.problems.analysis import flat_outputs

    with torch.no_grad():
        return flat_outputs(model(*inputs), problem.name)


def _close(outputs: Sequence[Any], expected: Sequence[Any]) -> bool:
    import torch

    if len(outputs) != len(expected):
        return False
    for one, other in zip(outputs, expected, strict=True):
        if one.shape != other.shape:
            return False
        difference = torch.linalg.vector_norm(one.double() - other.double())
        # written so that a difference that is not a number counts as too large
        if not difference <= TOLERANCE * torch.linalg.vector_norm(other.double()) + 1e-30:
            return False
    return True


class _Watched:
    """A kernel that keeps what the compiler gave each launch."""

    def __init__(self, kernel: Any, seen: list[Any]) -> None:
        self.kernel, self.seen = kernel, seen

    def __getitem__(self, grid: Any) -> Any:
        def launch(*args: Any, **kwargs: Any) -> Any:
            self.seen.append(self.kernel[grid](*args, **kwargs))

        return launch


def _watch(module: Any) -> list[Any]:
    seen: list[Any] = []
    for name, value in list(vars(module).items()):
        if name.endswith("_kernel"):
            setattr(module, name, _Watched(value, seen))
    return seen


def _facts(seen: Sequence[Any]) -> dict[str, float]:
    """The most that any kernel uses; 0 where this Triton does not say."""
    return {
        "registers": float(max((getattr(one, "n_regs", 0) or 0 for one in seen), default=0)),
        "shared_bytes": float(max((getattr(one.metadata, "shared", 0) for one in seen if one), default=0)),
        "threads": float(max((32 * getattr(one.metadata, "num_warps", 0) for one in seen if one), default=0)),
    }


def compiled_us(reference: Reference, inputs: list[Any], flush: Any) -> float | None:
    """Time torch.compile's model, microseconds; None where it cannot compile."""
    import torch

    try:
        model = torch.compile(reference.module)
        return sample(lambda: model(*inputs), flush)[0]
    except Exception as error:
        print(f"  torch.compile failed: {type(error).__name__}", flush=True)
        return None


def sample(call: Callable[[], Any], flush: Any) -> tuple[float, float, float]:
    """Median and quartiles in microseconds; the L2 is cleared before each call."""
    import torch

    with torch.no_grad():
        for _ in range(3):
            call()
        first = _timed(call, flush, 3)
        count = max(5, min(60, int(SAMPLE_MS * 1e3 / (statistics.median(first) + 120.0))))
        low, middle, high = statistics.quantiles(_timed(call, flush, count), n=4)
    torch.cuda.synchronize()
    return middle, low, high


def _timed(call: Callable[[], Any], flush: Any, count: int) -> list[float]:
    import torch

    pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(count)]
    for start, end in pairs:
        # the clearing also gives the host the head start that small kernels need
        flush.zero_()
        start.record()
        call()
        end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) * 1e3 for start, end in pairs]
