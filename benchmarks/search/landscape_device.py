"""The device's part of recording a landscape: runs a schedule once and holds it against eager, or times it with the L2 cleared."""

from __future__ import annotations

import os
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.lab.trusted import is_close, load_source, make_model, outputs_of, times_us
from tools.problems import Reference, open_problem
from tools.records import Problem, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.evaluation.wire.lead_in import ColdCache

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
        module = load_source(source, folder_here())
        seen = _watch(module)
        outputs = outputs_of(make_model(module, problem, reference), inputs, problem)
        torch.cuda.synchronize()
        return (Verdict.PASS if is_close(outputs, expected) else Verdict.WRONG), _facts(seen)
    except Exception as error:
        verdict = Verdict.BUILD_FAILED if "triton" in type(error).__module__ else Verdict.CRASHED
        try:
            torch.cuda.synchronize()
        except Exception:
            _broken = True
        return verdict, {}


def open_here(problem: Problem) -> tuple[Reference, list[Any], Any]:
    """Open the reference on the GPU with inputs and outputs; a process keeps the last problem's."""
    from tools.evaluation.wire.precision import set_precision
    from tools.records import Precision

    # as the evaluator has it for every side under the exact policy
    set_precision(Precision())
    if problem.id not in _opened:
        _opened.clear()
        reference = open_problem(problem)
        reference.module.to("cuda")
        inputs = reference.inputs(7, "cuda")
        _opened[problem.id] = (reference, inputs, reference.outputs(inputs))
    return _opened[problem.id]


def folder_here() -> Path:
    """Where this process keeps the sources it imports."""
    return Path(tempfile.gettempdir()) / f"landscape-{os.getpid()}"


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


def compiled_us(reference: Reference, inputs: list[Any], cold: ColdCache) -> float | None:
    """Time torch.compile's model, microseconds; None where it cannot compile."""
    import torch

    try:
        model = torch.compile(reference.module)
        return statistics.median(times_us(lambda: model(*inputs), cold))
    except Exception as error:
        print(f"  torch.compile failed: {type(error).__name__}", flush=True)
        return None
