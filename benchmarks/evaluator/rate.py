"""How fast a GPU's evaluator judges small candidates: one after the other, and several in flight.

Every candidate is right, and different: nothing is answered from a record. Prints one JSON object; needs a GPU.

Usage: python -m benchmarks.evaluator.rate [--candidates N] [--serial N] [--rows R] [--columns C]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tools.evaluation import EvaluationRequest, LocalPool
from tools.evaluation.supervisor.checking.runner_client import RunnerClient
from tools.evaluation.supervisor.timed.baseline_client import BaselineProcess
from tools.hardware import detect_sheet
from tools.hardware.devices import first_device
from tools.problems import load_problem, small_variants
from tools.records import Evaluation, HardwareSheet, Problem

REFERENCE = """
import torch

rows = {rows}
columns = {columns}


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
"""

CANDIDATE = '''
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    """One row a program. Number {number}."""
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row * columns + offsets, e / tl.sum(e, 0), mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps={warps})
        return out
'''


class Stopwatch:
    """Adds up what the calls of candidates and baselines take, from asking to the answer."""

    def __init__(self) -> None:
        """Start at nothing."""
        self.seconds = 0.0

    def over(self, owner: type, name: str) -> None:
        """Run while `owner.name` does."""
        function = getattr(owner, name)

        def timed(*args: Any, **given: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*args, **given)
            finally:
                self.seconds += time.perf_counter() - start

        setattr(owner, name, timed)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, default=60)
    parser.add_argument("--serial", type=int, default=8)
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--columns", type=int, default=1024)
    parser.add_argument("--in-flight", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(asyncio.run(_measure(options, Path(folder))), indent=1))


async def _measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    sheet = detect_sheet()
    assert sheet is not None, "this machine has no NVIDIA GPU"
    file = folder / "softmax.py"
    file.write_text(REFERENCE.format(rows=options.rows, columns=options.columns))
    problem = load_problem(file)
    sizes = (problem, *small_variants(problem))
    pool = LocalPool(folder / "scratch", first_device(), parallel=options.in_flight)
    watch = Stopwatch()
    for owner, name in ((RunnerClient, "call"), (RunnerClient, "collect"), (BaselineProcess, "call")):
        watch.over(owner, name)
    try:
        baselines = await pool.baselines(problem, sheet)
        await pool.evaluate(_request(sizes, sheet, 0))
        start, watch.seconds = time.monotonic(), 0.0
        alone = [await pool.evaluate(_request(sizes, sheet, 1 + number)) for number in range(options.serial)]
        serial_s, calls_s = time.monotonic() - start, watch.seconds
        print(f"one after the other: {serial_s / len(alone):.2f} s each", file=sys.stderr, flush=True)
        start = time.monotonic()
        requests = [_request(sizes, sheet, 1 + options.serial + number) for number in range(options.candidates)]
        many = await asyncio.gather(*map(pool.evaluate, requests))
        parallel_s = time.monotonic() - start
    finally:
        await pool.close()
    assert all(one.verdict == "PASS" for one in (*alone, *many)), [one.notes for one in (*alone, *many) if one.verdict != "PASS"]
    return {
        "device": sheet.title,
        "versions": alone[0].versions,
        "problem": f"softmax [{options.rows}, {options.columns}] float32",
        "eager_us": baselines.samples["eager"].median_us,
        "candidate_us": statistics.median(_times(alone)),
        "serial": {
            "candidates": len(alone),
            "seconds_each": serial_s / len(alone),
            "build_s": _phase(alone, "build"),
            "check_s": _phase(alone, "check"),
            "time_s": _phase(alone, "time"),
            "calls_s": calls_s / len(alone),
            "overhead_s": serial_s / len(alone) - _phase(alone, "build") - calls_s / len(alone),
        },
        "in_flight": {
            "candidates": len(many),
            "at_once": options.in_flight,
            "per_minute": 60 * len(many) / parallel_s,
            "gpu_seconds_each": statistics.median(one.gpu_seconds for one in many),
            "spread_of_medians": (max(_times(many)) - min(_times(many))) / statistics.median(_times(many)),
        },
    }


def _request(sizes: tuple[Problem, ...], sheet: HardwareSheet, number: int) -> EvaluationRequest:
    source = CANDIDATE.format(number=number, warps=4)
    return EvaluationRequest(problem=sizes[0], variants=sizes[1:], candidate=f"c{number}", source=source, target=sheet)


def _phase(evaluations: list[Evaluation], name: str) -> float:
    return statistics.median(one.phase_seconds[name] for one in evaluations)


def _times(evaluations: list[Evaluation]) -> list[float]:
    return [one.timing.candidate.median_us for one in evaluations if one.timing is not None]


if __name__ == "__main__":
    main()
