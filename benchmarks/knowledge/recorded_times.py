"""An evaluator that times nothing: it answers with the times that a GPU took for these very sources when a landscape was recorded.

A landscape (`benchmarks/search/landscapes`) names each schedule by the hash of its emitted source. Where today's coder still emits that
source, its recorded time is the time of the candidate, measured on the device that the table's header names. What the compiler says of a
kernel is not in the table, so it is compiled here once (`python -m benchmarks.knowledge.recorded_times WORK`), as the evaluator does where
there is no GPU.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from functools import cached_property
from pathlib import Path

from agents.coder.builtin import BuiltinCoder
from agents.coder.protocol import CodingTask, Draft, Refusal
from benchmarks.lab.compiling import Compiler, Made
from benchmarks.lab.trusted import SAMPLE_MS, TOLERANCE
from benchmarks.search.landscape import Landscape, LandscapeHeader, Place, landscape_files, load_landscapes
from tools.codegen import IllegalAction, LoweringError, apply, emit, initial_schedule, trace
from tools.errors import MachineError
from tools.hardware import load_sheet
from tools.problems import load_problem
from tools.profiling.ncu import Counters
from tools.records import (
    ROOT,
    Action,
    Baselines,
    Candidate,
    Correctness,
    Evaluation,
    EvaluationRequest,
    HardwareSheet,
    OutputError,
    Problem,
    Sample,
    Tier,
    Timing,
    Verdict,
    content_hash,
)

OPERATORS = Path(__file__).parents[2] / "data" / "operators"
TARGET = "h200"
SAME = 0.9
"""A problem takes part where at least this share of its recorded sources is what the coder emits today."""
MEDIAN_ERROR = 1.2533
"""Standard error of a normal sample's median over that of its mean."""
QUARTILES = 1.349
"""Distance of a normal distribution's quartiles in standard deviations."""


class Compiled(Made):
    """What the compiler made of one source on this machine; a line of the work folder's `compiled.jsonl`."""

    place: str


class Recorded:
    """One problem with its landscape, as far as the coder still emits the recorded sources."""

    def __init__(self, header: LandscapeHeader, landscape: Landscape) -> None:
        """Emit every recorded schedule again, along the recorded steps, and keep those whose source is the recorded one."""
        self.header, self.landscape = header, landscape
        self.problem = load_problem(OPERATORS / f"{landscape.problem}.py")
        graph = trace(self.problem)
        schedules, todo = {ROOT: initial_schedule(graph)}, [ROOT]
        self.sources: dict[str, str] = {}
        """Source by place, of the places that are still the same."""
        while todo:
            start = todo.pop(0)
            for step in landscape.from_place.get(start, ()):
                if step.end in schedules:
                    continue
                try:
                    schedule = apply(graph, schedules[start], step.action)
                    source = emit(self.problem, graph, schedule).source
                except (IllegalAction, LoweringError):
                    # today's coder takes this step no more
                    continue
                schedules[step.end] = schedule
                todo.append(step.end)
                if content_hash(self.problem.id, source) == step.end:
                    self.sources[step.end] = source

    @property
    def same(self) -> float:
        """Share of the recorded sources that are still emitted."""
        return len(self.sources) / max(1, len(self.landscape.places))

    def place(self, source: str) -> Place | None:
        """The recorded place of a source; None where there is none."""
        name = content_hash(self.problem.id, source)
        return self.landscape.by_id[name] if name in self.sources else None

    def allowed(self, parent: str) -> set[str]:
        """Ids of the actions that lead from a place to one whose time is known."""
        return {step.action.id for step in self.landscape.from_place.get(parent, ()) if step.end in self.sources}

    @cached_property
    def best_speedup(self) -> float:
        """Of the fastest place that is still the same, against the better baseline; 1 where none is faster."""
        return max([1.0, *(self.landscape.baseline_us / t for name in self.sources if (t := self.landscape.by_id[name].time_us))])


def load_recorded() -> dict[str, Recorded]:
    """Every recorded problem of which enough is still the same, by the problem's id."""
    tables = [load_landscapes(path) for path in landscape_files()]
    found = [Recorded(header, landscape) for header, landscapes in tables for landscape in landscapes]
    return {one.problem.id: one for one in found if one.same >= SAME}


class RecordedCoder(BuiltinCoder):
    """The built-in coder, held to the steps whose end was recorded."""

    def __init__(self, tables: dict[str, Recorded]) -> None:
        """Take the tables by problem id."""
        self._tables = tables

    async def options(self, problem: Problem, parent: Candidate | None, sheet: HardwareSheet) -> tuple[Action, ...]:
        """List the legal actions that lead to a recorded time."""
        start = content_hash(problem.id, parent.source) if parent else ROOT
        allowed = self._tables[problem.id].allowed(start)
        return tuple(action for action in await super().options(problem, parent, sheet) if action.id in allowed)

    async def write(self, task: CodingTask) -> Draft | Refusal:
        """Write as ever; a source without a recorded time is refused."""
        return self._checked(task.problem, await super().write(task))

    async def repair(self, task: CodingTask, draft: Draft, evaluation: Evaluation, attempt: int) -> Draft | Refusal:
        """Repair as ever; a source without a recorded time is refused."""
        return self._checked(task.problem, await super().repair(task, draft, evaluation, attempt))

    def _checked(self, problem: Problem, made: Draft | Refusal) -> Draft | Refusal:
        if isinstance(made, Draft) and self._tables[problem.id].place(made.source) is None:
            return Refusal(reason="No time was recorded for this source.")
        return made


class RecordedPool:
    """Answers with recorded times."""

    def __init__(self, tables: dict[str, Recorded], compiled: Path) -> None:
        """Take the tables by problem id, and the file of what was compiled here."""
        self._tables = tables
        header = next(iter(tables.values())).header
        self.name = f"recorded times ({header.device}, {header.recorded})"
        lines = compiled.read_text().splitlines()
        self._compiled = {one.place: one for one in map(Compiled.model_validate_json, lines)}

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Return the recorded verdict and time of a source; one that was not recorded raises MachineError."""
        table = self._tables[request.problem.id]
        place = table.place(request.source)
        if place is None:
            raise MachineError(f"No time was recorded for candidate {request.candidate}.", "Hold the coder to what was recorded.")
        if place.verdict is not Verdict.PASS:
            rule = "recorded" if place.verdict is Verdict.CHEATED else None
            return Evaluation(candidate=request.candidate, verdict=place.verdict, rule=rule, versions=table.header.versions)
        compiled = self._compiled.get(place.id)
        if compiled is None:
            raise MachineError(
                f"Candidate {request.candidate} was not compiled here.", "Run `python -m benchmarks.knowledge.recorded_times WORK` again."
            )
        return Evaluation(
            candidate=request.candidate,
            verdict=Verdict.PASS,
            correctness=_correctness(request.problem),
            timing=_timing(table, place),
            launches=compiled.launches,
            kernels=compiled.kernels,
            notes=(
                f"Not timed now: recorded {table.header.recorded} on {table.header.device} ({table.header.method}).",
                "Its error was found to be within the recorder's tolerance and not kept.",
                "The interval is that of a median by the recorded quartiles; the baselines' own spread was not kept.",
            ),
            versions=table.header.versions,
        )

    async def baselines(self, problem: Problem, target: HardwareSheet) -> Baselines:
        """Return the recorded medians of eager and torch.compile."""
        header = self._tables[problem.id].header
        note = "Recorded medians; their spread was not kept."
        return Baselines(tier=Tier.IN_PROCESS, samples=_baselines(self._tables[problem.id]), device=header.device, notes=(note,))

    async def counters(self, request: EvaluationRequest) -> Counters:
        """Say that none were recorded."""
        return Counters(note="No counters were recorded.")

    async def close(self) -> None:
        """Nothing is open."""


def _correctness(problem: Problem) -> Correctness:
    """What the recorder made sure of: each output within its tolerance of eager on one input; a bound, not a figure."""
    bound = {"relative_l2": TOLERANCE, "limit_relative_l2": TOLERANCE, "worst_row": math.inf, "limit_worst_row": math.inf}
    own = {"reference_relative_l2": 0.0, "reference_worst_row": 0.0}
    outputs = tuple(OutputError(output=f"output {place}", **bound, **own) for place in range(max(1, len(problem.abi.outputs))))
    return Correctness(outputs=outputs, calls=1, sizes=("as written",), executor="gpu")


def _timing(table: Recorded, place: Place) -> Timing:
    # as many repetitions as the recorder takes of something this fast
    count = max(5, min(60, int(SAMPLE_MS * 1e3 / (place.time_us + 120.0))))
    error = MEDIAN_ERROR * (place.high_us - place.low_us) / QUARTILES / place.time_us / math.sqrt(count)
    samples = _baselines(table)
    speedups = {name: sample.median_us / place.time_us for name, sample in samples.items()}
    return Timing(
        tier=Tier.IN_PROCESS,
        candidate=Sample(median_us=place.time_us, low_us=place.low_us, high_us=place.high_us, count=count),
        baselines=samples,
        speedups={name: (one, one * math.exp(-1.96 * error), one * math.exp(1.96 * error)) for name, one in speedups.items()},
        device=table.header.device,
    )


def _baselines(table: Recorded) -> dict[str, Sample]:
    times = {"eager": table.landscape.eager_us, "compile": table.landscape.compile_us}
    return {name: Sample(median_us=time_us, low_us=time_us, high_us=time_us, count=1) for name, time_us in times.items() if time_us}


def compile_all(out: Path) -> None:
    """Compile every recorded source for the target, and write what the compiler says; run in a process of its own."""
    tables, began = load_recorded(), time.monotonic()
    compiler = Compiler(load_sheet(TARGET))
    with out.with_suffix(".part").open("w") as file, tempfile.TemporaryDirectory() as folder:
        for table in tables.values():
            for place, source in table.sources.items():
                if table.landscape.by_id[place].verdict is Verdict.PASS:
                    made = compiler.compile(table.problem, source, Path(folder) / place)
                    file.write(Compiled(place=place, **dict(made)).model_dump_json() + "\n")
            print(f"{table.problem.name}: {len(table.sources)} sources, {time.monotonic() - began:.0f} s", flush=True)
    out.with_suffix(".part").replace(out)


def main() -> None:
    """Compile."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    compile_all(given.work / "compiled.jsonl")


if __name__ == "__main__":
    main()
