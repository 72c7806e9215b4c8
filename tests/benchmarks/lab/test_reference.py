"""The process that times a reference: eager first, then torch.compile, its launches in turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.lab.device_lock import Turns
from benchmarks.lab.reference import Rival
from benchmarks.lab.truth import plan_calls
from tests.benchmarks.lab.sources import small_problem


def rival(folder: Path) -> Rival:
    """One that compiles for the CPU."""
    return Rival("cpu", "h200", Turns(folder / "turns", hold_s=0), compiles=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_eager_comes_first_and_the_compiled_one_after(tmp_path: Path) -> None:
    """Both are timed, and the turn is free in the end."""
    problem = small_problem(tmp_path)
    turns = Turns(tmp_path / "turns", hold_s=0)
    answers = rival(tmp_path).times(problem, plan_calls(problem)[0])
    eager = next(answers)
    with turns.turn():
        assert all(time > 0 for time in eager)
    compiled = next(answers)
    assert isinstance(compiled, tuple), compiled
    assert len(compiled) >= 5
    assert list(answers) == []
