"""Runs, checks and times what our own coder wrote in this very process, without walls: for benchmarks, never for anybody else's code.

A result is near the reference's on one input, within `TOLERANCE`; a time is that of CUDA events after the evaluator's own lead-in.
"""

from __future__ import annotations

import ast
import importlib.util
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.evaluation.untrusted.loading import nothing_drawn
from tools.problems import Reference
from tools.records import Problem, content_hash

if TYPE_CHECKING:
    from tools.evaluation.wire.lead_in import ColdCache

TOLERANCE = 1e-4
"""Relative L2 difference from eager up to which a schedule counts as right here; the evaluator is far stricter."""
SAMPLE_MS = 25.0
"""What one thing is timed for, after three calls that are not counted."""
MOST, LEAST = 30, 5


def load_source(source: str, folder: Path) -> Any:
    """Import a source as a module of its own, from a file in `folder`: Triton reads kernels from files."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"s{content_hash(source)}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_model(module: Any, problem: Problem, reference: Reference, device: str = "cuda") -> Any:
    """Make the candidate's model with the reference's parameters."""
    with nothing_drawn():
        model = module.ModelNew(*ast.literal_eval(problem.abi.init))
    model.load_state_dict(reference.module.state_dict())
    return model.to(device).train(problem.abi.training)


def outputs_of(model: Any, inputs: Sequence[Any], problem: Problem) -> list[Any]:
    """Call it once."""
    import torch

    from tools.problems.analysis import flat_outputs

    with torch.no_grad():
        return flat_outputs(model(*inputs), problem.name)


def is_close(outputs: Sequence[Any], expected: Sequence[Any]) -> bool:
    """Whether every output has the shape that is expected and lies within the tolerance."""
    import torch

    def near(one: Any, other: Any) -> bool:
        # written so that a difference that is not a number counts as too large
        distance = torch.linalg.vector_norm(one.double() - other.double())
        return bool(distance <= TOLERANCE * torch.linalg.vector_norm(other.double()) + 1e-30)

    same = len(outputs) == len(expected)
    return same and all(a.shape == b.shape and near(a, b) for a, b in zip(outputs, expected, strict=True))


def times_us(call: Callable[[], Any], cold: ColdCache | None) -> tuple[float, ...]:
    """Time a call, microseconds; without a device's cache to clear, on the host, where a time says nothing of a GPU's."""
    import torch

    timed = (lambda: _on_device(call, cold)) if cold is not None else (lambda: _on_host(call))
    with torch.no_grad():
        for _ in range(3):
            call()
        first = sorted(timed() for _ in range(3))[1]
        return tuple(timed() for _ in range(max(LEAST, min(MOST, int(SAMPLE_MS * 1e3 / first)))))


def _on_device(call: Callable[[], Any], cold: ColdCache) -> float:
    import torch

    from tools.evaluation.wire.lead_in import lead_in

    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    lead_in(cold, primed=True)
    start.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end)) * 1e3


def _on_host(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1e6
