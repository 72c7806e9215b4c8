"""What candidates are held against: made once, made again alike, and kept within bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.lab.device_lock import HUGE_BYTES, DeviceLock
from benchmarks.lab.truth import Truths, plan_calls
from tests.benchmarks.lab.sources import small_problem
from tools.problems import load_problem
from tools.records import Problem

LOGARITHM = """
import torch


def logarithm(x):
    return torch.log(x)


def example_inputs():
    return (torch.rand(12, 70) + 0.5,)
"""


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """A small sum."""
    return small_problem(tmp_path_factory.mktemp("truth"))


def truths(folder: Path, room: int) -> Truths:
    """Truths on the CPU."""
    return Truths("cpu", DeviceLock(folder / "lock", hold_s=0), room)


def resized(problem: Problem, nbytes: int) -> Problem:
    """The same problem with an argument that claims a size."""
    (argument,) = problem.abi.inputs
    large = argument.model_copy(update={"shape": (nbytes // 4,)})
    return problem.model_copy(update={"abi": problem.abi.model_copy(update={"arguments": (large,)})})


def test_a_problem_is_tried_as_made_and_on_hard_inputs(problem: Problem) -> None:
    """Unless it is large: then as made alone."""
    names = [call.distribution for call in plan_calls(problem)]
    assert names[:2] == ["as made", "low bits"]
    assert len(names) == 3
    assert [call.distribution for call in plan_calls(resized(problem, 1 << 30))] == ["as made"]


def test_a_problem_is_worked_out_once_and_again_alike_when_it_was_dropped(tmp_path: Path, problem: Problem) -> None:
    """From the same calls come the same inputs, results and limits."""
    calls = plan_calls(problem)
    known = truths(tmp_path, 1 << 20)
    first = known.of(problem, calls)
    assert known.of(problem, calls) is first
    known.drop(problem)
    again = known.of(problem, calls)
    assert again is not first
    assert [call.limits for call in again.calls] == [call.limits for call in first.calls]
    assert all(a.truth.oracle[0].equal(b.truth.oracle[0]) for a, b in zip(again.calls, first.calls, strict=True))


def test_the_problem_that_was_not_asked_for_lately_goes_first(tmp_path: Path, problem: Problem) -> None:
    """There is room for one and a half: the older is dropped, the newer stays."""
    other = problem.model_copy(update={"entry": problem.entry, "source": problem.source + "\n# another\n"})
    calls = plan_calls(problem)
    known = truths(tmp_path, 0)
    older = known.of(problem, calls)
    known = truths(tmp_path, older.nbytes * 3 // 2)
    older, newer = known.of(problem, calls), known.of(other, calls)
    known.trim(other)
    assert known.of(other, calls) is newer
    assert known.of(problem, calls) is not older


def test_what_fills_a_device_is_not_kept(tmp_path: Path, problem: Problem) -> None:
    """However much room there is."""
    huge = resized(problem, HUGE_BYTES)
    known = truths(tmp_path, 1 << 40)
    first = known.of(huge, plan_calls(huge))
    known.trim(huge)
    assert known.of(huge, plan_calls(huge)) is not first


def test_inputs_without_a_finite_answer_are_left_out(tmp_path: Path) -> None:
    """Logarithms of negative numbers prove nothing, and a note says so."""
    file = tmp_path / "logarithm.py"
    file.write_text(LOGARITHM)
    problem = load_problem(file)
    made, hard = plan_calls(problem)[:2]
    negated = hard.model_copy(update={"distribution": "negated", "group": "negated"})
    found = truths(tmp_path, 0).of(problem, [made, negated])
    assert [call.distribution for call in found.calls] == ["as made"]
    assert found.notes == ("Inputs “negated” were left out: the reference answers with NaN or infinity.",)
