"""The calibration kernel: the same product and the same copy on every device, by which devices of one kind are compared."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from tools.evaluation.wire.jobs.calibration import CalibrationAnswer, CalibrationJob
from tools.evaluation.wire.phase import Phase

_SIDE = {"cuda": 4096, "cpu": 256}
"""Of the product of half-precision matrices: a millisecond of a current GPU's tensor cores, then a copy that fills its caches."""
_WARM, _TIMED = 20, 101


def work(phase: Phase) -> None:
    """Time it and answer; whatever the driver raises ends the job."""
    job = CalibrationJob.model_validate_json(phase.job)
    phase.answer(CalibrationAnswer(median_us=median_us(job.device)).model_dump_json().encode())


def median_us(device: str) -> float:
    """Median of a hundred calls on a warm device, microseconds."""
    import torch

    side = _SIDE[device]
    dtype = torch.float16 if device == "cuda" else torch.float32
    left, right = (torch.ones(side, side, device=device, dtype=dtype) for _ in range(2))
    product, copy = torch.empty_like(left), torch.empty_like(left)

    def call() -> None:
        torch.mm(left, right, out=product)
        copy.copy_(product)

    for _ in range(_WARM):
        call()
    once = _on_gpu if device == "cuda" else _on_cpu
    return statistics.median(once(call) for _ in range(_TIMED))


def _on_gpu(call: Callable[[], None]) -> float:
    import torch

    event: Any = torch.cuda.Event
    begin, end = (event(enable_timing=True) for _ in range(2))
    begin.record()
    call()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) * 1e3


def _on_cpu(call: Callable[[], None]) -> float:
    begin = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - begin) / 1e3
