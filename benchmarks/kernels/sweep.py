"""Times the built-in coder's schedules of given problems on this machine's GPU, in one process, and prints one JSON line a schedule.

Usage: python -m benchmarks.kernels.sweep FILE … [--device h200] [--pairs] [--most N] [--repeats N] [--out FILE]

Starts from the coder's first schedule, then turns one knob of every generated region at a time (`--pairs`: two knobs). Only
code of our own coder runs, so there is no sandbox; each result is compared with the reference before it is timed, and an
option that fails or is wrong is a line without a time. Bytes are the problem's inputs, parameters and outputs, each once.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib.util
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.codegen import LoweringError, OperatorGraph, Schedule, apply, emit, initial_schedule, options, trace
from tools.codegen.templates.registry import knobs_of
from tools.hardware import load_sheet
from tools.problems import load_problem, open_problem
from tools.records import HardwareSheet, Problem

if TYPE_CHECKING:
    import torch

TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-4, "float64": 1e-9}
"""Relative L2 distance from the reference beyond which a schedule is not timed. The evaluator's own judgement is stricter."""


def main() -> None:
    """Sweep the files one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--device", default="h200", help="the hardware sheet that options are chosen for")
    parser.add_argument("--pairs", action="store_true", help="change two knobs at a time, too")
    parser.add_argument("--most", type=int, default=200, help="schedules a problem")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    bench = Bench(given.repeats)
    for path in given.files:
        rows = list(sweep(bench, path, load_sheet(given.device), given.pairs, given.most))
        for row in rows:
            line = json.dumps({"problem": path.stem, "gpu": bench.gpu, "copy_gb_s": round(bench.copy_gb_s), **row})
            print(line, flush=True)
            if given.out:
                with given.out.open("a") as file:
                    file.write(line + "\n")
        timed = [row for row in rows if row.get("us")]
        if timed:
            best = min(timed, key=lambda row: row["us"])
            print(
                f"# {path.stem}: best {best['us']:.1f} µs = {best['share']:.0%} of the copy bandwidth: {best['schedule']}", file=sys.stderr
            )


class Bench:
    """The GPU, its copy bandwidth, and how a call is timed: CUDA events, L2 overwritten before each call, the median."""

    def __init__(self, repeats: int) -> None:
        """Measure the copy bandwidth: bytes read and written a second, of 1 GiB."""
        import torch

        if not torch.cuda.is_available():
            sys.exit("codegen_sweep times kernels: it needs a CUDA GPU")
        self.torch, self.repeats = torch, repeats
        self.gpu = torch.cuda.get_device_name()
        self.flush = torch.empty(max(1 << 26, 4 * torch.cuda.get_device_properties(0).L2_cache_size) // 4, device="cuda")
        self.copy_gb_s = self._copy_gb_s()

    def _copy_gb_s(self) -> float:
        source = self.torch.empty(1 << 28, device="cuda")
        target = self.torch.empty_like(source)
        return float(2 * source.nbytes / self.median_us(lambda: target.copy_(source)) / 1e3)

    def median_us(self, call: Callable[[], Any]) -> float:
        """Time one call in microseconds."""
        cuda, times = self.torch.cuda, list[float]()
        for _ in range(3):
            call()
        for _ in range(self.repeats):
            # read, not written: lines left dirty would be written back during the call
            self.flush.sum()
            start, stop = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
            start.record()
            call()
            stop.record()
            stop.synchronize()
            times.append(start.elapsed_time(stop) * 1e3)
        return statistics.median(times)


def sweep(bench: Bench, path: Path, sheet: HardwareSheet, pairs: bool, most: int) -> Iterator[dict[str, Any]]:
    """Time the reference, then every schedule."""
    torch = bench.torch
    problem = load_problem(path)
    graph = trace(problem)
    reference = open_problem(problem)
    module = reference.module.cuda()
    inputs = [value.cuda() if isinstance(value, torch.Tensor) else value for value in reference.inputs(7)]
    moved = problem.abi.compulsory_bytes
    with torch.no_grad():
        wanted = module(*inputs)
        us = bench.median_us(lambda: module(*inputs))
        yield {"schedule": "reference, eager", "us": round(us, 2), "bytes": moved, "share": _share(bench, moved, us)}
        for text, schedule in _schedules(graph, sheet, pairs, most):
            row: dict[str, Any] = {"schedule": text, "bytes": moved}
            try:
                candidate = _candidate(problem, graph, schedule, reference.parameters())
                began = time.monotonic()
                row["distance"] = _distance(torch, candidate(*inputs), wanted)
                row["compile_s"] = round(time.monotonic() - began, 2)
                if row["distance"] <= TOLERANCE.get(problem.abi.outputs[0].dtype, 0.0):
                    row["us"] = round(bench.median_us(lambda: candidate(*inputs)), 2)  # noqa: B023  called at once
                    row["share"] = _share(bench, moved, row["us"])
            except (LoweringError, RuntimeError, ValueError) as error:
                row["error"] = f"{type(error).__name__}: {str(error).strip().splitlines()[-1][:300] if str(error).strip() else ''}"
            yield row


def _schedules(graph: OperatorGraph, sheet: HardwareSheet, pairs: bool, most: int) -> Iterator[tuple[str, Schedule]]:
    """List the first schedule and its neighbours, each once."""
    schedule = initial_schedule(graph)
    widest = next((a for a in options(graph, schedule, sheet) if "scope" in a.parameters or a.parameters.get("implementation")), None)
    if widest is None:
        return
    first = apply(graph, schedule, widest)
    seen = {first.model_dump_json()}
    yield _text(first), first
    level = [first]
    for _ in range(2 if pairs else 1):
        found = {new.model_dump_json(): new for each in level for new in _neighbours(graph, each, sheet)}
        level = [new for key, new in found.items() if key not in seen][: most - len(seen)]
        seen |= set(found)
        for new in level:
            yield _text(new), new


def _neighbours(graph: OperatorGraph, schedule: Schedule, sheet: HardwareSheet) -> Iterator[Schedule]:
    for action in options(graph, schedule, sheet):
        region = schedule.region(action.region)
        if region is not None and region.is_generated and set(action.parameters) <= set(knobs_of(region.template)):
            yield apply(graph, schedule, action)


def _text(schedule: Schedule) -> str:
    parts = []
    for region in schedule.regions:
        settings = " ".join(f"{key}={value}" for key, value in region.parameters.items())
        parts.append(f"{region.id} {region.template}{' ' + settings if settings else ''}")
    return "; ".join(parts)


def _candidate(problem: Problem, graph: OperatorGraph, schedule: Schedule, parameters: Any) -> torch.nn.Module:
    source = emit(problem, graph, schedule).source
    name = f"swept_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    path = Path(tempfile.gettempdir()) / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    candidate: torch.nn.Module = module.ModelNew(*ast.literal_eval(problem.abi.init))
    candidate.load_state_dict(parameters)
    return candidate.cuda().train(problem.abi.training)


def _distance(torch: Any, got: Any, wanted: Any) -> float:
    pairs = zip(*([value] if isinstance(value, torch.Tensor) else list(value) for value in (got, wanted)), strict=True)
    worst = 0.0
    for one, two in pairs:
        worst = max(worst, float((one.double() - two.double()).norm() / two.double().norm().clamp_min(1e-30)))
    return worst


def _share(bench: Bench, moved: int, us: float) -> float:
    return float(round(moved / us / 1e3 / bench.copy_gb_s, 3))


if __name__ == "__main__":
    main()
