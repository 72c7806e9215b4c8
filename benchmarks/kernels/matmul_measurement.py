"""Measures one way of one product on this GPU, for `benchmarks.kernels.matmul_ways`, which gives each a process of its own.

Usage: python -m benchmarks.kernels.matmul_measurement CASE WAY OUT.json
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.kernels.matmul_cases import find_case, kernel_source, open_case
from benchmarks.lab.trusted import load_source
from tools.problems import open_problem
from tools.records import Problem, Record

if TYPE_CHECKING:
    import torch

SAMPLES = 25
"""Timed calls of each."""
REPEATS = 3
"""Further calls whose bits are compared with the first one's."""
SEED = 7


class Measurement(Record):
    """One way of one product, beside the library's."""

    ms: float
    """Median over `SAMPLES` calls."""
    quartiles_ms: tuple[float, float]
    """Of the same calls."""
    cublas_ms: float
    """Median of the reference's calls, between ours; in full float32, or in float16 where the operands are."""
    error: float | None
    """Relative L2 distance from the product in float64; None where infinities or NaNs are in other places than the reference's."""
    cublas_error: float
    """The reference's own."""
    of_limit: float | None
    """The larger of both errors, of the whole and of the worst row, over what the exact policy allows them; above 1 is worse than that."""
    same_bits: bool
    """Whether `REPEATS` further calls gave the same bits."""
    build_s: float
    """First call, compilation included."""


class Ending(Record):
    """What a process leaves behind: a measurement, or the reason why there is none."""

    measurement: Measurement | None = None
    error: str = ""
    """First line of what was raised; empty where nothing was."""


def measure(case: str, way: str) -> Measurement:
    """Build, check and time one way."""
    import torch

    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        problem, graph = open_case(find_case(case), Path(folder))
        # products have no parameters
        return _measured(problem, load_source(kernel_source(problem, graph, way), Path(folder)).ModelNew())


def _measured(problem: Problem, candidate: Callable[..., torch.Tensor]) -> Measurement:
    import torch

    # torch's own default, said where the figures are made
    torch.backends.cuda.matmul.allow_tf32 = False
    opened = open_problem(problem)
    reference, inputs = opened.module, [value.cuda() for value in opened.inputs(SEED) if isinstance(value, torch.Tensor)]
    own, oracle = reference(*inputs), reference(*[value.double() for value in inputs])
    began = time.monotonic()
    got = candidate(*inputs)
    torch.cuda.synchronize()
    build_s = time.monotonic() - began
    same = all(torch.equal(got, candidate(*inputs)) for _ in range(REPEATS))
    error, cublas_error, share = judge(problem, got, own, oracle)
    del got, own, oracle
    ours, theirs = _timed([lambda: candidate(*inputs), lambda: reference(*inputs)])
    low, middle, high = statistics.quantiles(ours, n=4)
    return Measurement(
        ms=middle,
        quartiles_ms=(low, high),
        cublas_ms=statistics.median(theirs),
        error=error if error < float("inf") else None,
        cublas_error=cublas_error,
        of_limit=share if share < float("inf") else None,
        same_bits=same,
        build_s=round(build_s, 2),
    )


def judge(problem: Problem, got: torch.Tensor, own: torch.Tensor, oracle: torch.Tensor) -> tuple[float, float, float]:
    """Return the error, the reference's own, and the larger share of the exact policy's limits; infinite for NaNs that are ours alone.

    What the inputs' own digits leave open is not allowed for, so the limits are the strictest that the policy gives.
    """
    from tools.evaluation.trusted.numerics import EXACT, distance, limits
    from tools.policies import load_policy

    found, theirs = distance(got, oracle, own), distance(own, oracle, own)
    limit = limits(problem.abi.outputs[0], load_policy("exact"), theirs, EXACT)
    share = max(found.relative_l2 / limit.relative_l2, found.worst_row / limit.worst_row)
    return found.relative_l2, theirs.relative_l2, share


def _timed(calls: list[Callable[[], Any]]) -> list[list[float]]:
    """Time calls in turn, milliseconds each; the L2 is cleared by reading before every one."""
    import torch

    from tools.evaluation.wire.lead_in import ColdCache

    cold = ColdCache(2 * torch.cuda.get_device_properties(0).L2_cache_size)
    times: list[list[float]] = [[] for _ in calls]
    for sample in range(SAMPLES + 3):
        for call, found in zip(calls, times, strict=True):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            cold.clear()
            start.record()
            call()
            end.record()
            end.synchronize()
            # the first three warm the clocks up
            if sample >= 3:
                found.append(start.elapsed_time(end))
    return times


def main() -> None:
    """Measure what the command line names, and write how it ended."""
    case, way, out = sys.argv[1:]
    try:
        ending = Ending(measurement=measure(case, way))
    except Exception as error:
        lines = str(error).strip().splitlines()
        ending = Ending(error=f"{type(error).__name__}: {lines[0][:200] if lines else ''}")
    Path(out).write_text(ending.model_dump_json() + "\n")


if __name__ == "__main__":
    main()
