"""Compares the cost model's ranking of schedules with measured times, problem by problem, and the tuner with other ways to find the best.

Usage: python -m benchmarks.kernels.cost_model [FILE …] [--operators DIR] [--device h200] [--fine] [--seeds 5]

FILE is a sweep of `benchmarks.kernels.sweep` or a table of `benchmarks.search.record_landscape`; the default is all that ship
with the project. Spearman's rank correlation is taken over the schedules whose regions are all generated. The fine stage
takes registers and shared memory from the compiler instead of guessing them: a table has those of each schedule's heaviest
kernel as they were on the device; a sweep's schedules are cross-compiled here with `--fine`, some seconds each. Evaluations
count until a time within 5 % of the best recorded one was seen, from eight starts that are not: by the tuner (eight at a
time), by greedy steps of one knob, and at random (expectation).
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import socket
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.kernels.until_close import CLOSE, WAVE, Measured, greedy_evaluations, starts_of, tuner_evaluations
from benchmarks.search.landscape import Landscape, Place, landscape_files, load_landscapes
from tools.codegen import IllegalAction, OperatorGraph, Schedule, apply, emit, initial_schedule, options, trace
from tools.codegen.schedule.plan import plan_region
from tools.cost.launch_time import launch_time_us
from tools.cost.launches import region_launches
from tools.hardware import load_sheet
from tools.machine_code.resources import read_resources
from tools.problems import load_problem
from tools.records import ROOT, HardwareSheet, KernelResources, Problem
from tools.tuning.ranks import spearman

OPERATORS = Path(__file__).parents[2] / "data" / "operators"
SWEEPS = Path(__file__).with_name("sweeps")
FITTED = frozenset(
    {
        *("attention", "cross_entropy", "cumsum", "gelu_bias", "log_sum_exp", "matmul_bias_gelu", "max_pool2d", "rms_norm_residual"),
        *("row_mean", "softmax"),
    }
)
"""Problems whose times were looked at while the model was written (of `row_mean` its sweep alone); the others test it."""
FEWEST = 5
"""Schedules below which there is nothing to rank."""


@dataclass
class Operator:
    """A sample operator, traced."""

    problem: Problem
    graph: OperatorGraph

    @classmethod
    def load(cls, folder: Path, name: str) -> Operator:
        """Read and trace it."""
        problem = load_problem(folder / f"{name}.py")
        return cls(problem, trace(problem))


def main() -> None:
    """Report on every file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--operators", type=Path, default=OPERATORS)
    parser.add_argument("--device", default="h200")
    parser.add_argument("--fine", action="store_true", help="cross-compile each schedule, too")
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    sheet = load_sheet(given.device)
    files = given.files or [*sorted(SWEEPS.glob("*.jsonl")), *landscape_files()]
    print("| file | problem | schedules | Spearman coarse | Spearman fine | best µs | best of the model's 8 | tuner | greedy | random |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for path in files:
        for name, operator, found, steps in read(path, given.operators, sheet):
            if len(found) < FEWEST:
                continue
            rank(operator, found, sheet, fine=given.fine)
            print(_line(path, name, found, steps, given.seeds), flush=True)


def read(path: Path, folder: Path, sheet: HardwareSheet) -> Iterator[tuple[str, Operator, list[Measured], dict[int, list[int]]]]:
    """Yield each problem of a file: its timed schedules, and which are one step apart."""
    if path.suffix == ".gz" or '"schema_version"' in path.read_text().partition("\n")[0]:
        for landscape in load_landscapes(path)[1]:
            operator = Operator.load(folder, landscape.problem)
            named, steps = places_of(operator, landscape)
            yield landscape.problem, operator, list(named.values()), steps
        return
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in path.read_text().splitlines():
        row = json.loads(line)
        if row.get("us") and not row["schedule"].startswith("reference"):
            rows[row["problem"]].append(row)
    for name, each in rows.items():
        operator = Operator.load(folder, name)
        found = [Measured(swept_schedule(operator.graph, row["schedule"], sheet), row["us"]) for row in each]
        yield name, operator, found, {}


def swept_schedule(graph: OperatorGraph, text: str, sheet: HardwareSheet) -> Schedule:
    """Read a schedule as `benchmarks.kernels.sweep` writes it."""
    schedule = initial_schedule(graph)
    widest = next(a for a in options(graph, schedule, sheet) if "scope" in a.parameters or a.parameters.get("implementation"))
    schedule = apply(graph, schedule, widest)
    for part in text.split("; "):
        name, _, *settings = part.split()
        region = schedule.region(name)
        assert region is not None, part
        pairs = (one.split("=") for one in settings)
        schedule = schedule.replaced(
            region.model_copy(update={"parameters": {key: int(value) if value.isdigit() else value for key, value in pairs}})
        )
    return schedule


def places_of(operator: Operator, landscape: Landscape) -> tuple[dict[str, Measured], dict[int, list[int]]]:
    """List the timed schedules of a table whose regions are all generated, by id, and which are one step apart."""
    schedules, waiting = {ROOT: initial_schedule(operator.graph)}, [ROOT]
    while waiting:
        start = waiting.pop(0)
        for step in landscape.from_place.get(start, ()):
            if step.end not in schedules:
                try:
                    schedules[step.end] = apply(operator.graph, schedules[start], step.action)
                except IllegalAction:
                    # recorded by a version that had this option
                    continue
                waiting.append(step.end)
    names = [name for name, schedule in schedules.items() if _timed(landscape, name) and all(r.is_generated for r in schedule.regions)]
    place = {name: index for index, name in enumerate(names)}
    steps: dict[int, list[int]] = defaultdict(list)
    for step in landscape.steps:
        if step.start in place and step.end in place:
            steps[place[step.start]].append(place[step.end])
    return {name: _measured(schedules[name], landscape.by_id[name]) for name in names}, dict(steps)


def _measured(schedule: Schedule, place: Place) -> Measured:
    return Measured(schedule, place.time_us, registers=place.registers, shared_bytes=place.shared_bytes)


def _timed(landscape: Landscape, name: str) -> bool:
    return name in landscape.by_id and landscape.by_id[name].time_us > 0


def rank(operator: Operator, found: list[Measured], sheet: HardwareSheet, *, fine: bool) -> None:
    """Give each schedule its modelled times."""
    for one in found:
        shapes = [
            shape
            for region in one.schedule.regions
            for shape in region_launches(plan_region(operator.graph, region.nodes), region.parameters, sheet)
        ]
        one.coarse_us = sum(max(sheet.launch_us, launch_time_us(shape, sheet)) for shape in shapes)
        if one.registers:
            heaviest = max(shapes, key=lambda shape: shape.dram_bytes)
            known = heaviest._replace(registers=one.registers, shared_bytes=one.shared_bytes)
            one.fine_us = sum(max(sheet.launch_us, launch_time_us(known if shape is heaviest else shape, sheet)) for shape in shapes)
        elif fine:
            kernels = compiled(operator.problem, emit(operator.problem, operator.graph, one.schedule).source, sheet)
            if len(kernels) == len(shapes):
                shapes = [
                    shape._replace(registers=kernel.registers + kernel.spill_bytes / 8, shared_bytes=float(kernel.shared_bytes))
                    for shape, kernel in zip(shapes, kernels, strict=True)
                ]
            one.fine_us = sum(max(sheet.launch_us, launch_time_us(shape, sheet)) for shape in shapes)


def compiled(problem: Problem, source: str, sheet: HardwareSheet) -> list[KernelResources]:
    """Cross-compile a source of our own coder and read its kernels, one a launch; empty where that does not work. A process of its own."""
    import torch  # noqa: F401  the child need not import it again
    import triton  # noqa: F401

    context = multiprocessing.get_context("fork")
    mine, its = context.Pipe(duplex=False)
    child = context.Process(target=_compile, args=(problem, source, sheet, its))
    child.start()
    its.close()
    try:
        answer = mine.recv()
    except EOFError:
        answer = []
    child.join()
    return [KernelResources.model_validate_json(text) for text in answer]


def _compile(problem: Problem, source: str, sheet: HardwareSheet, answer: Any) -> None:
    import base64

    from tools.evaluation.untrusted.builder import build
    from tools.evaluation.wire.jobs.builder import BuildAnswer, BuilderJob
    from tools.evaluation.wire.phase import Phase

    class Kept(Phase):
        data = b""

        def answer(self, data: bytes) -> None:
            self.data = data

    with tempfile.TemporaryDirectory() as folder:
        job = BuilderJob(abi=problem.abi, source=source, sheet=sheet).model_dump_json().encode()
        phase = Kept(job=job, control=socket.socketpair()[0], scratch=Path(folder))
        build(phase)
    built = BuildAnswer.model_validate_json(phase.data)
    kernels = [read_resources(base64.b64decode(one.code), one.name, sheet.arch, one.shared_bytes) for one in built.kernels]
    answer.send([one.model_dump_json() for one in kernels])


def _line(path: Path, name: str, found: list[Measured], steps: dict[int, list[int]], seeds: int) -> str:
    times = [one.us for one in found]
    coarse = spearman(times, [one.coarse_us for one in found])
    fine = "" if math.isnan(found[0].fine_us) else f"{spearman(times, [one.fine_us for one in found]):.2f}"
    ranked = sorted(found, key=lambda one: one.coarse_us)
    starts = starts_of(times)
    tuned = statistics.fmean(tuner_evaluations(found, start, seed) for start in starts for seed in range(seeds))
    climbed = [greedy_evaluations(times, steps, start) for start in starts] if steps else []
    close = sum(us <= CLOSE * min(times) for us in times)
    chance = (len(times) + 1) / (close + 1)
    marked = name if name in FITTED else f"{name} (held out)"
    return (
        f"| {path.stem} | {marked} | {len(found)} | {coarse:.2f} | {fine} | {min(times):.1f} | {min(one.us for one in ranked[:WAVE]):.1f} "
        f"| {tuned:.1f} | {f'{statistics.fmean(climbed):.1f}' if climbed else ''} | {chance:.1f} |"
    )


if __name__ == "__main__":
    main()
