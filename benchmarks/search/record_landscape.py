"""Records a landscape: schedules of operators, found breadth-first by actions, each checked against eager and timed on this GPU.

Our own generated code only, so there is no sandbox; times are CUDA events in one process with the L2 cleared, good for comparing search
methods and for nothing else. Usage:
  python -m benchmarks.search.record_landscape OUT.jsonl [FILE …] [--places 60] [--fan 6] [--workers 16] [--seconds 280] [--dry]
FILE defaults to the sample operators; --dry only enumerates and says how many schedules there are, and needs no GPU.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import version
from multiprocessing.pool import AsyncResult, Pool
from pathlib import Path

from benchmarks.lab.trusted import SAMPLE_MS, TOLERANCE, load_source, make_model, times_us
from benchmarks.search.landscape import Landscape, LandscapeHeader, Place
from benchmarks.search.landscape_device import POISONED, check, compiled_us, folder_here, open_here
from benchmarks.search.landscape_exploration import Explored, Found, explore
from tools.hardware import detect_sheet, load_sheet
from tools.records import ROOT, HardwareSheet, Verdict

OPERATORS = Path(__file__).parents[2] / "data" / "operators"
COMPILE = "compile"
"""Name of the task that warms torch.compile's cache for a problem."""


def main() -> None:
    """Enumerate, compile and check in parallel, time one after the other, write."""
    given = _arguments()
    # workers of a pool may have no children, which inductor's parallel compilation starts
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    began = time.monotonic()
    sheet = load_sheet("h200") if given.dry else detect_sheet()
    if sheet is None:
        sys.exit("There is no GPU with a hardware sheet here: use --dry to see what would be recorded.")
    files = [Path(name) for name in given.files] or sorted(OPERATORS.glob("*.py"))
    context = multiprocessing.get_context("spawn")
    with context.Pool(given.workers) as pool:
        jobs = [pool.apply_async(explore, (str(file), sheet, given.places, given.fan, given.seed)) for file in files]
        explored = [one for file, job in zip(files, jobs, strict=True) if (one := _result(file.stem, job)) is not None]
    for one in explored:
        print(f"{one.problem.name}: {len(one.found)} schedules, {len(one.steps)} steps, {one.omitted} not recorded", flush=True)
    if given.dry:
        return
    check_all(explored, context.Pool, given.workers, began + given.seconds * 0.6)
    with given.out.open("w") as out:
        out.write(_header() + "\n")
        for one in explored:
            if (landscape := measure(one, sheet, began + given.seconds)) is not None:
                out.write(landscape.model_dump_json(exclude_defaults=True) + "\n")
                out.flush()
    print(f"{given.out}: {time.monotonic() - began:.0f} s")


def check_all(explored: Sequence[Explored], make_pool: Callable[[int], Pool], workers: int, deadline: float) -> None:
    """Compile and check every schedule in parallel; what a broken context left over goes to fresh workers, what is late stays unchecked."""
    left = [(one, name) for one in explored for name in (COMPILE, *one.found)]
    for _ in range(4):
        pool = make_pool(workers)
        jobs = [(one, name, pool.apply_async(check, (one.problem, _source(one, name)))) for one, name in left]
        left = []
        for one, name, job in jobs:
            verdict, facts = _in_time(job, deadline)
            if verdict == POISONED:
                left.append((one, name))
            elif name != COMPILE:
                one.found[name].verdict, one.found[name].facts = verdict, facts
        pool.terminate()
        if not left:
            return


def _source(one: Explored, name: str) -> str:
    return "" if name == COMPILE else one.found[name].source


def _in_time(job: AsyncResult[tuple[str, dict[str, float]]], deadline: float) -> tuple[str, dict[str, float]]:
    try:
        return job.get(timeout=max(0.05, deadline - time.monotonic()))
    except multiprocessing.TimeoutError:
        return "", {}


def measure(one: Explored, sheet: HardwareSheet, deadline: float) -> Landscape | None:
    """Time what passed, in this process, one after the other; None where even the reference could not be timed in time."""
    from tools.evaluation.wire.lead_in import ColdCache, flush_bytes

    if time.monotonic() > deadline:
        return None
    reference, inputs, _ = open_here(one.problem)
    cold = ColdCache(flush_bytes(sheet))
    eager = statistics.median(times_us(lambda: reference.module(*inputs), cold))
    compiled = compiled_us(reference, inputs, cold)
    for found in one.found.values():
        if found.verdict == Verdict.PASS and time.monotonic() < deadline:
            model = make_model(load_source(found.source, folder_here()), one.problem, reference)
            low, middle, high = statistics.quantiles(times_us(lambda model=model: model(*inputs), cold), n=4)  # type: ignore[misc]
            found.sample = (middle, low, high)
    places = [place for name, found in one.found.items() if (place := _recorded(name, found))]
    kept = {place.id for place in places} | {ROOT}
    steps = tuple(step for step in one.steps if step.start in kept and step.end in kept)
    print(f"{one.problem.name}: eager {eager:.1f} us, {len(places)} places: {dict(Counter(p.verdict.value for p in places))}", flush=True)
    return Landscape(
        problem=one.problem.name,
        families=tuple(one.problem.work.families),
        eager_us=eager,
        compile_us=compiled,
        floor_us=one.problem.abi.compulsory_bytes / (sheet.memory_gbps * 1e3),
        omitted=one.omitted + len(one.steps) - len(steps),
        places=tuple(places),
        steps=steps,
    )


def _recorded(name: str, found: Found) -> Place | None:
    """The place of a schedule; None where time ran out before it was checked or timed."""
    made = [region for region in found.schedule.regions if region.is_generated]
    left = len(found.schedule.regions) - len(made)
    main = max(made, key=lambda region: len(region.nodes), default=None)
    run = f" {main.template} w{main.parameters.get('num_warps', 0)} s{main.parameters.get('num_stages', 0)}" if main else ""
    shape = {
        "signature": f"k{len(made)} l{left}{run}",
        "lines": sum(bool(line.strip()) for line in found.source.splitlines()),
        "left": left,
    }
    if found.sample:
        middle, low, high = found.sample
        return Place(id=name, time_us=middle, low_us=low, high_us=high, **shape, **found.facts)
    failed = found.verdict and found.verdict != Verdict.PASS
    return Place(id=name, verdict=Verdict(found.verdict), **shape) if failed else None


def _header() -> str:
    import torch

    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    header = LandscapeHeader(
        synthetic=False,
        device=torch.cuda.get_device_name(),
        recorded=time.strftime("%Y-%m-%d"),
        versions={name: version(name) for name in ("torch", "triton")} | {"python": sys.version.split()[0]},
        method=f"CUDA events in one process, L2 cleared by reading, median over {SAMPLE_MS:.0f} ms; right within {TOLERANCE:g} of eager",
        commit=commit,
    )
    return json.dumps(header.model_dump(mode="json"))


def _result(name: str, job: AsyncResult[Explored]) -> Explored | None:
    try:
        return job.get()
    except Exception as error:
        print(f"{name}: not recorded: {error}", flush=True)
        return None


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--places", type=int, default=60, help="schedules recorded a problem at most")
    parser.add_argument("--fan", type=int, default=6, help="parameter changes followed from each schedule")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=280, help="what is not timed by then is left out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dry", action="store_true")
    return parser.parse_intermixed_args()


if __name__ == "__main__":
    main()
