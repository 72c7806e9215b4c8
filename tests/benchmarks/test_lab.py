"""The lab: every source judged once, in processes that a bad one may kill."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.lab import Lab
from benchmarks.lab_pool import LabPool
from tools.codegen import emit, initial_schedule, trace
from tools.codegen.options import apply, options
from tools.evaluation import EvaluationRequest
from tools.hardware import load_sheet
from tools.problems import load_problem
from tools.records import Evaluation, Problem

REFERENCE = """
import torch


def rows_sum(x):
    return x.sum(-1)


def example_inputs():
    return (torch.randn(12, 70),)
"""


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """A small sum."""
    file = tmp_path_factory.mktemp("lab") / "rows_sum.py"
    file.write_text(REFERENCE)
    return load_problem(file)


@pytest.fixture(scope="module")
def source(problem: Problem) -> str:
    """The coder's first kernel for it."""
    graph = trace(problem)
    start = initial_schedule(graph)
    generate = next(a for a in options(graph, start, load_sheet("h200")) if a.parameters.get("implementation") == "generated")
    return emit(problem, graph, apply(graph, start, generate)).source


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the lab keeps what it found."""
    return tmp_path_factory.mktemp("store") / "lab.jsonl"


@pytest.fixture(scope="module")
def lab(store: Path) -> Iterator[Lab]:
    """A lab without a GPU."""
    made = Lab(store, "h200", device="cpu", compilers=1)
    yield made
    made.close()


def ask(lab: Lab, problem: Problem, source: str) -> Evaluation:
    """Have the lab judge a source, as a run would."""
    request = EvaluationRequest(problem=problem, candidate="c", source=source, target=load_sheet("h200"))
    return asyncio.run(LabPool(lab.address, lab.title).evaluate(request))


@pytest.mark.slow
def test_a_source_is_judged_once_and_kept(lab: Lab, store: Path, problem: Problem, source: str) -> None:
    """A right kernel passes with a time and what the compiler says; asked again, and by the next lab, the same time is the answer."""
    first = ask(lab, problem, source)
    lines = len(store.read_text().splitlines())
    again = ask(lab, problem, source)
    next_lab = Lab(store, "h200", device="cpu", compilers=1)
    kept = ask(next_lab, problem, source)
    next_lab.close()

    assert first.verdict == "PASS", first.notes
    assert first.kernels
    assert first.timing is not None
    assert again == kept == first
    assert len(store.read_text().splitlines()) == lines


@pytest.mark.slow
def test_a_bad_source_is_a_verdict(lab: Lab, problem: Problem, source: str) -> None:
    """A wrong one and one that does not compile are told apart, and one that kills its process stops nobody."""
    end = "        return sum_1"
    deadly = source.replace(end, f"        if type(x).__name__ == 'Tensor':\n            import os\n\n            os._exit(1)\n{end}")

    assert ask(lab, problem, source.replace(end, f"{end} + 1")).verdict == "WRONG"
    assert ask(lab, problem, source.replace("tl.store(", "tl.stare(")).verdict == "BUILD_FAILED"
    assert ask(lab, problem, deadly).verdict == "CRASHED"
    assert ask(lab, problem, source + "# after the crash\n").verdict == "PASS"
