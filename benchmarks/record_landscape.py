"""Records a landscape: schedules of operators, found breadth-first by actions, each checked against eager and timed on this GPU.

Our own generated code only, so there is no sandbox; times are CUDA events in one process with the L2 cleared, good for comparing search
methods and for nothing else. Usage:
  python -m benchmarks.record_landscape OUT.jsonl [FILE …] [--places 60] [--fan 6] [--workers 16] [--seconds 280] [--dry]
FILE defaults to the sample operators; --dry only enumerates and says how many schedules there are, and needs no GPU.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from multiprocessing.pool import AsyncResult, Pool
from pathlib import Path
from random import Random
from typing import Any

from graphs.search.landscape import Landscape, LandscapeHeader, Place, Step
from tools.codegen import IllegalAction, LoweringError, OperatorGraph, Schedule, apply, emit, initial_schedule, options, trace
from tools.hardware import detect_sheet, load_sheet
from tools.problems import Reference, load_problem, open_problem
from tools.records import ROOT, Action, ActionKind, HardwareSheet, Problem, Verdict, content_hash

OPERATORS = Path(__file__).parents[1] / "data" / "operators"
COMPILE = "compile"
"""Name of the task that warms torch.compile's cache for a problem."""
TOLERANCE = 1e-4
"""Relative L2 difference from eager up to which a schedule counts as right here; the evaluator is far stricter."""
SAMPLE_MS = 25.0
FLUSH_BYTES = 256 * 2**20
POISONED = "poisoned"
"""What a worker says whose device context an earlier kernel broke: the task is given to another."""


@dataclass
class Found:
    """One schedule of a problem."""

    schedule: Schedule
    source: str
    verdict: str = ""
    """Empty while it was not checked; `PASS` or another verdict after."""
    facts: dict[str, float] = field(default_factory=dict)
    sample: tuple[float, float, float] | None = None


@dataclass
class Explored:
    """What enumeration found on one problem."""

    problem: Problem
    found: dict[str, Found]
    steps: list[Step]
    omitted: int


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


def explore(file: str, sheet: HardwareSheet, places: int, fan: int, seed: int) -> Explored:
    """Apply actions breadth-first from the initial schedule, every structural one and at most `fan` drawn others a schedule."""
    problem = load_problem(Path(file))
    graph = trace(problem)
    start = initial_schedule(graph)
    found: dict[str, Found] = {}
    homes: dict[str, str] = {}
    queue, rng = [(ROOT, start)], Random(seed)
    while queue and len(found) < places:
        _, schedule = queue.pop(0)
        for action in _chosen(options(graph, schedule, sheet), fan, rng):
            reached = _place(problem, graph, schedule, action, homes, found, places)
            if reached:
                queue.append(reached)
    steps, omitted = _steps(graph, start, found, homes, sheet)
    return Explored(problem, found, steps, omitted)


def _chosen(offered: Sequence[Action], fan: int, rng: Random) -> list[Action]:
    structural = [a for a in offered if a.kind is ActionKind.FUSION or a.parameters.get("implementation") == "generated"]
    knobs = [a for a in offered if a not in structural]
    return structural + rng.sample(knobs, min(fan, len(knobs)))


def _place(
    problem: Problem, graph: OperatorGraph, schedule: Schedule, action: Action, homes: dict[str, str], found: dict[str, Found], places: int
) -> tuple[str, Schedule] | None:
    """Add the schedule after `action` where it is new and fits; return it to go on from."""
    try:
        changed = apply(graph, schedule, action)
        key = changed.model_dump_json()
        if key in homes or len(found) >= places:
            return None
        source = emit(problem, graph, changed).source
    except (IllegalAction, LoweringError):
        return None
    name = content_hash(problem.id, source)
    homes[key] = name
    if name in found:
        return None
    found[name] = Found(changed, source)
    return name, changed


def _steps(
    graph: OperatorGraph, start: Schedule, found: dict[str, Found], homes: dict[str, str], sheet: HardwareSheet
) -> tuple[list[Step], int]:
    """Every step between recorded schedules, also those that the enumeration did not take, and how many lead elsewhere."""
    steps, omitted = [], 0
    for name, schedule in ((ROOT, start), *((name, one.schedule) for name, one in found.items())):
        for action in options(graph, schedule, sheet):
            try:
                end = homes.get(apply(graph, schedule, action).model_dump_json())
            except IllegalAction:
                continue
            if end is None:
                omitted += 1
            else:
                steps.append(Step(start=name, action=action, end=end))
    return steps, omitted


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


_broken = False
_opened: dict[str, tuple[Reference, list[Any], Any]] = {}


def check(problem: Problem, source: str) -> tuple[str, dict[str, float]]:
    """In a worker: run one source once and compare it with eager; an empty source warms torch.compile's cache."""
    global _broken  # noqa: PLW0603 - a worker's context is broken for good
    if _broken:
        return POISONED, {}
    import torch

    try:
        reference, inputs, expected = _open(problem)
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


def measure(one: Explored, sheet: HardwareSheet, deadline: float) -> Landscape | None:
    """Time what passed, in this process, one after the other; None where even the reference could not be timed in time."""
    import torch

    if time.monotonic() > deadline:
        return None
    _opened.clear()
    reference, inputs, _ = _open(one.problem)
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    eager = _sample(lambda: reference.module(*inputs), flush)[0]
    compiled = _compiled(reference, inputs, flush)
    for found in one.found.values():
        if found.verdict == Verdict.PASS and time.monotonic() < deadline:
            model = _model(_load(found.source), one.problem, reference)
            found.sample = _sample(lambda model=model: model(*inputs), flush)  # type: ignore[misc]
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


def _open(problem: Problem) -> tuple[Reference, list[Any], Any]:
    """The reference on the GPU with inputs and outputs; a worker keeps the last problem's."""
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


def _compiled(reference: Reference, inputs: list[Any], flush: Any) -> float | None:
    import torch

    try:
        model = torch.compile(reference.module)
        return _sample(lambda: model(*inputs), flush)[0]
    except Exception as error:
        print(f"  torch.compile failed: {type(error).__name__}", flush=True)
        return None


def _sample(call: Callable[[], Any], flush: Any) -> tuple[float, float, float]:
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


def _header() -> str:
    import torch

    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    header = LandscapeHeader(
        synthetic=False,
        device=torch.cuda.get_device_name(),
        recorded=time.strftime("%Y-%m-%d"),
        versions={name: version(name) for name in ("torch", "triton")} | {"python": sys.version.split()[0]},
        method=f"CUDA events in one process, L2 cleared, median over about {SAMPLE_MS:.0f} ms; right within {TOLERANCE:g} of eager",
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
