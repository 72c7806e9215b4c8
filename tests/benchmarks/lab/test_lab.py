"""The lab: every source judged once by the evaluator's oracle, in processes that a bad one may kill."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.lab.lab import Lab
from benchmarks.lab.pool import LabPool
from tests.benchmarks.lab.sources import END, doing, kernel_for, small_problem
from tools.errors import MachineError
from tools.evaluation import EvaluationRequest
from tools.hardware import detect_sheet, load_sheet
from tools.records import Evaluation, Problem, content_hash


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """A small sum."""
    return small_problem(tmp_path_factory.mktemp("lab"))


@pytest.fixture(scope="module")
def source(problem: Problem) -> str:
    """The coder's first kernel for it."""
    return kernel_for(problem)


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


def kept_in(store: Path) -> int:
    """Results in a lab's store; none before the first."""
    return len(store.read_text().splitlines()) if store.exists() else 0


@pytest.mark.slow
def test_a_source_is_judged_once_and_kept(lab: Lab, store: Path, problem: Problem, source: str) -> None:
    """A right kernel passes with a time and what the compiler says; asked again, and by the next lab, the same time is the answer."""
    first = ask(lab, problem, source)
    lines = kept_in(store)
    again = ask(lab, problem, source)
    next_lab = Lab(store, "h200", device="cpu", compilers=1)
    kept = ask(next_lab, problem, source)
    next_lab.close()

    assert first.verdict == "PASS", first.notes
    assert first.kernels
    assert first.timing is not None
    assert again == kept == first
    assert kept_in(store) == lines


@pytest.mark.slow
def test_errors_and_limits_are_the_oracles(lab: Lab, problem: Problem, source: str) -> None:
    """A pass shows errors measured on inputs as made and on hard ones; a hundred-thousandth too much is wrong, and by how much is said."""
    right = ask(lab, problem, source)
    off = ask(lab, problem, source.replace(END, f"{END} * 1.00001"))

    assert right.correctness is not None
    assert right.correctness.calls + sum("left out" in note for note in right.notes) == 3
    assert right.correctness.executor == "interpreter"
    (error,) = right.correctness.outputs
    assert 0 < error.limit_relative_l2 < 1e-5
    assert len(right.seeds[0].calls) == 3
    assert off.verdict == "WRONG"
    assert "relative L2 error" in off.notes[0]
    assert off.correctness is not None
    assert off.correctness.outputs[0].relative_l2 == pytest.approx(1e-5, rel=0.1)


@pytest.mark.slow
def test_a_reference_that_is_not_compiled_leaves_eager(lab: Lab, problem: Problem, source: str) -> None:
    """Without a time of torch.compile a kernel is held against eager alone, and both answers say why."""
    found = ask(lab, problem, source)
    baselines = asyncio.run(LabPool(lab.address, lab.title).baselines(problem, load_sheet("h200")))

    assert found.timing is not None
    assert list(found.timing.speedups) == list(baselines.samples) == ["eager"]
    assert any("torch.compile was not timed" in note for note in found.notes)
    assert any("torch.compile was not timed" in note for note in baselines.notes)


@pytest.mark.slow
def test_a_bad_source_is_a_verdict(lab: Lab, problem: Problem, source: str) -> None:
    """A wrong one and one that does not compile are told apart, and one that kills its process stops nobody."""
    deadly = doing(source, "import os; os._exit(1)")

    assert ask(lab, problem, source.replace(END, f"{END} + 1")).verdict == "WRONG"
    assert ask(lab, problem, source.replace(END, f"{END}.double()")).verdict == "WRONG"
    assert ask(lab, problem, source.replace("tl.store(", "tl.stare(")).verdict == "BUILD_FAILED"
    assert ask(lab, problem, deadly).verdict == "CRASHED"
    assert ask(lab, problem, source + "# after the crash\n").verdict == "PASS"


@pytest.mark.slow
def test_a_candidate_that_writes_to_its_inputs_spoils_no_other(lab: Lab, problem: Problem, source: str) -> None:
    """It is right once and wrong after it was timed, and the next candidate meets the inputs as they were."""
    greedy = ask(lab, problem, doing(source, "x.zero_()"))

    assert greedy.verdict == "WRONG"
    assert "after it was timed" in greedy.notes[0]
    assert ask(lab, problem, source + "# after the greedy one\n").verdict == "PASS"


@pytest.mark.gpu
@pytest.mark.skipif(detect_sheet() is None, reason="no GPU here")
def test_on_a_gpu_both_baselines_are_timed(tmp_path: Path, problem: Problem, source: str) -> None:
    """The reference is compiled and timed beside the judging, and both are measured."""
    sheet = detect_sheet()
    assert sheet is not None
    lab = Lab(tmp_path / "lab.jsonl", sheet.name, compilers=2, references=2, judges=2)
    try:
        found = ask(lab, problem, source)
    finally:
        lab.close()
    assert found.verdict == "PASS", found.notes
    assert found.timing is not None
    assert set(found.timing.speedups) == {"eager", "compile"}, found.notes
    assert found.correctness is not None
    assert found.correctness.executor == "gpu"


@pytest.mark.slow
def test_a_reference_that_cannot_be_judged_says_nothing_of_a_source(lab: Lab, store: Path, problem: Problem, source: str) -> None:
    """Where the oracle fails nothing is kept, so that it may be asked again; the next problem is judged."""
    fixed = problem.model_copy(update={"source": problem.source.replace("x.sum(-1)", "x.sum(-1) + x.double().matmul(torch.ones(70))")})
    lines = kept_in(store)
    found = ask(lab, fixed, source)

    assert found.verdict == "INFRASTRUCTURE"
    assert "could not be judged" in found.notes[-1]
    assert kept_in(store) == lines
    assert ask(lab, problem, source + "# after the oracle failed\n").verdict == "PASS"


def test_times_that_an_earlier_lab_kept_are_read(tmp_path: Path, problem: Problem) -> None:
    """Its rows hold times alone, and no process is started for them."""
    store = tmp_path / "lab.jsonl"
    times = {"eager": [5.0, 6.0], "compile": [4.0, 4.5]}
    store.write_text(json.dumps({"key": content_hash(problem.id, "baselines"), "value": times}) + "\n")
    lab = Lab(store, "h200", device="cpu", compilers=1)
    found = asyncio.run(LabPool(lab.address, lab.title).baselines(problem, load_sheet("h200")))
    lab.close()

    assert {name: sample.count for name, sample in found.samples.items()} == {"eager": 2, "compile": 2}


def test_a_lab_ends_at_once_with_work_in_flight(tmp_path: Path, problem: Problem, source: str) -> None:
    """Whoever waits hears that it ended, and nothing of it is kept as a result."""
    mark = tmp_path / "compiling"
    lab = Lab(tmp_path / "lab.jsonl", "h200", device="cpu", compilers=1)
    heard: list[MachineError] = []

    def wait() -> None:
        try:
            ask(lab, problem, f"open({str(mark)!r}, 'w').close()\nimport time\ntime.sleep(600)\n{source}")
        except MachineError as error:
            heard.append(error)

    asker = threading.Thread(target=wait)
    asker.start()
    while not mark.exists():
        time.sleep(0.05)
    began = time.monotonic()
    lab.close()
    asker.join(10)

    assert time.monotonic() - began < 5
    assert heard
    assert not (tmp_path / "lab.jsonl").exists()
