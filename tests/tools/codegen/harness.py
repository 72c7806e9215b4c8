"""What the tests of emitted code share: samples as problems, schedules with chosen parameters, and workers in processes of their own."""

from __future__ import annotations

import atexit
import fcntl
import functools
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support import breadth
from tests.tools.codegen.samples import SAMPLES
from tools.codegen import LoweringError, OperatorGraph, Schedule, emit, initial_schedule, trace
from tools.codegen.schedule.plan import plan_region
from tools.problems import load_problem, small_variants
from tools.problems.analysis import analyse
from tools.problems.opening import blueprint_of
from tools.problems.proposals import EVEN, ODD
from tools.problems.source import parse, recognise
from tools.records import Problem

HERE = Path(__file__).parent
ROOT = HERE.parents[2]

Settings = Mapping[str, Mapping[str, bool | int | float | str]]
"""Parameters by template."""


@functools.cache
def problem_of(source: str, name: str = "sample") -> Problem:
    """Load a reference from its text, once."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.py"
        path.write_text(source)
        return load_problem(path)


FEW = (ODD, EVEN) if breadth.ALL else (ODD,)
"""Kinds of small sizes at which references are traced: with even ones all but 8 of 1,540 tests say the same, in 1.6 times the time."""


def trace_problem(problem: Problem) -> OperatorGraph:
    """Trace a problem at as few sizes as tell what a size is; numbers that are made of sizes are told by `traced_at_all_sizes`."""
    return trace(problem, small_variants(problem, FEW))


@functools.cache
def traced_text(source: str, name: str = "sample") -> tuple[Problem, OperatorGraph]:
    """Load a reference from its text and trace it at few sizes, once: a trace takes longer than all that is done with it."""
    problem = problem_of(source, name)
    if "SMALL_SIZES" in source and not breadth.ALL:
        # the few that the file declares, without their mixtures: those only tell more of numbers, and block nothing
        return problem, trace(problem, small_variants(problem))
    return traced_at_all_sizes(source, name) if "SMALL_SIZES" in source else (problem, trace_problem(problem))


@functools.cache
def traced_at_all_sizes(source: str, name: str = "sample") -> tuple[Problem, OperatorGraph]:
    """Do the same at all sizes at which it is traced in a run, for tests of what is known of sizes and of numbers made of them."""
    problem = problem_of(source, name)
    return problem, trace(problem)


def traced(name: str) -> tuple[Problem, OperatorGraph]:
    """Load and trace a sample once."""
    return traced_text(SAMPLES[name], name)


SMALL = {"ROWS": 5, "COLS": 37, "BATCH": 2, "STEPS": 5, "DIM": 20, "WIDE": 35, "HEIGHT": 5, "WIDTH": 7}
"""Sizes at which sources written for others are run: odd, and few enough for the interpreter."""


def small(source: str) -> str:
    """Rewrite a reference to sizes that no trace of it saw."""
    return re.sub(r"^([A-Z]+) = \d+$", lambda found: f"{found[1]} = {SMALL.get(found[1], 8)}", source, flags=re.MULTILINE)


@functools.cache
def unseen(source: str, name: str = "sample") -> Problem:
    """Read what is to be run at sizes that no trace of it saw: loading it would seek small variants of these, and run them, too."""
    recognised = recognise(parse(source, name), name, name)
    facts = analyse(blueprint_of(recognised.form, recognised.entry, source, {}, name))
    return Problem(name=name, form=recognised.form, entry=recognised.entry, source=source, abi=facts.abi, work=facts.work)


def at_small_sizes(name: str) -> Problem:
    """Read a sample at sizes that no trace of it saw."""
    return unseen(small(SAMPLES[name]), name)


def generated(graph: OperatorGraph, settings: Settings) -> Schedule:
    """Generate every region that can be, with the settings of its template, or first values where none are given."""
    regions = []
    for region in initial_schedule(graph).regions:
        try:
            planned = plan_region(graph, region.nodes)
        except LoweringError:
            regions.append(region)
        else:
            parameters = dict(settings.get(planned.template.name) or planned.defaults(132))
            if planned.template.refusal(planned.kernel, parameters):
                parameters["algorithm"] = "looped"
            regions.append(region.model_copy(update={"template": planned.template.name, "parameters": parameters}))
    return Schedule(regions=tuple(regions))


class Workers:
    """A process that has imported torch and Triton, with Triton's interpreter or its compiler, and forks a worker for every script."""

    def __init__(self, *, interpret: bool) -> None:
        """Start it."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"} | ({"TRITON_INTERPRET": "1"} if interpret else {})
        # sets come in another order than here, where a process draws its own seed unless it was given one
        environment["PYTHONHASHSEED"] = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
        command = [sys.executable, "-W", "ignore", str(HERE / "worker_parent.py")]
        self._process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        atexit.register(self.close)

    def run(self, script: str, todo: Path, done: Path, said: Path) -> int:
        """Run a script over a file of jobs into a file of results, keep what it says, and return its exit status."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([script, str(todo), str(done), str(said)]) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline() or "1")

    def close(self) -> None:
        """End it."""
        self._process.communicate()


@functools.cache
def workers(*, interpret: bool) -> Workers:
    """Start the parent of all workers of a kind once."""
    return Workers(interpret=interpret)


def run_worker(script: str, jobs: list[dict[str, Any]], interpret: bool) -> list[dict[str, Any]]:
    """Run a worker script over jobs in one process and return its results."""
    with tempfile.TemporaryDirectory() as folder:
        todo, done, said = Path(folder) / "jobs.json", Path(folder) / "results.json", Path(folder) / "said.txt"
        todo.write_text(json.dumps(jobs))
        status = workers(interpret=interpret).run(script, todo, done, said)
        assert status == 0, said.read_text()[-2000:] if said.exists() else "the workers' parent ended"
        return list(json.loads(done.read_text()))


def for_targets(jobs: Mapping[str, dict[str, str]], keys: Sequence[tuple[str, int | str]]) -> dict[tuple[str, int | str], dict[str, Any]]:
    """Compile jobs, each for the targets it is named with, in one process, which imports once, and return the results by both names."""
    found = run_worker("compile_worker.py", [{**jobs[name], "arch": target} for name, target in keys], interpret=False)
    return dict(zip(keys, found, strict=True))


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], dict[Any, Any]]) -> dict[Any, Any]:
    """Make results in a folder once for all workers of a test run: whoever comes second waits for them."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    folder.mkdir(exist_ok=True)
    kept = folder / "results.pickle"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            kept.write_bytes(pickle.dumps(make(folder)))
    return dict(pickle.loads(kept.read_bytes()))


def write_job(folder: Path, name: str, problem: Problem, source: str) -> dict[str, str]:
    """Put a problem and a source into files and return the job for a worker."""
    (folder / f"{name}.json").write_text(problem.model_dump_json())
    (folder / f"{name}.py").write_text(source)
    return {"problem": str(folder / f"{name}.json"), "source": str(folder / f"{name}.py")}


def assert_right_at_unseen_sizes(folder: Path, sources: Mapping[str, str]) -> None:
    """Have what is generated of each source run in the interpreter at sizes that no trace saw: it is as near as the reference's own."""
    jobs = []
    for name, source in sources.items():
        problem, graph = traced_text(source)
        jobs.append(write_job(folder, name, unseen(small(source)), emit(problem, graph, generated(graph, {})).source))
    for name, result in zip(sources, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True):
        assert "crash" not in result, (name, result["crash"])
        assert result["error"] <= 1.0, name


def interpreted(
    folder: Path, samples: Mapping[str, str], cases: Sequence[tuple[str, str]], source_of: Callable[[str, str], str]
) -> dict[tuple[str, str], dict[str, Any]]:
    """Run kernels of samples in the interpreter at small sizes that no trace saw, by sample and what `source_of` calls its settings."""
    jobs = [write_job(folder, "_".join(case), unseen(small(samples[case[0]])), source_of(*case)) for case in cases]
    return dict(zip(cases, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


def compiled_for_hopper(
    folder: Path, samples: Mapping[str, str], cases: Sequence[tuple[str, str]], source_of: Callable[[str, str], str]
) -> list[dict[str, Any]]:
    """Compile kernels of samples for Hopper."""
    jobs = [write_job(folder, "_".join(case), unseen(small(samples[case[0]])), source_of(*case)) for case in cases]
    return run_worker("compile_worker.py", [{**job, "arch": 90} for job in jobs], interpret=False)
