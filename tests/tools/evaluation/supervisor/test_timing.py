"""When a candidate is timed a second time."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from tools.evaluation.supervisor import timing
from tools.evaluation.supervisor.correctness import Outcome
from tools.records import Seeds, Verdict

SLOWED = Outcome(Verdict.TIMING_INCONSISTENT, notes=["The compile baseline took 15 µs beside the candidate."], by_chance=True)
LIED = Outcome(Verdict.TIMING_INCONSISTENT, notes=["Its events say 4 µs, but it answered 90 µs later."])


@dataclass
class Known:
    """What an evaluation knows."""

    notes: list[str] = field(default_factory=list)
    seeds: list[Seeds] = field(default_factory=list)

    def part(self, _: str) -> AbstractContextManager[None]:
        """Take nothing down."""
        return nullcontext()


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> list[Outcome]:
    """Outcomes of the sessions to come, in order; those that were held are taken away."""
    coming: list[Outcome] = []

    class Session:
        seeds = Seeds(purpose="time", size="as written", shake=None, calls=())

        def __init__(self, *_: Any) -> None: ...

        def run(self, *_: Any) -> Outcome:
            return coming.pop(0)

    monkeypatch.setattr(timing, "TimedSession", Session)
    return coming


def time_it(case: Known) -> Any:
    """Time some candidate."""
    request: Any = SimpleNamespace(problem=None, target=None, stage="confirm", source="", timeout_s=1.0)
    nothing: Any = None
    return timing.timed(nothing, request, case, nothing, -1)


def test_a_slowed_baseline_is_looked_at_again(ends: list[Outcome]) -> None:
    """What counts is the second session; a note says why there was one, and both sessions' seeds are told."""
    ends[:] = [SLOWED, LIED]
    case = Known()
    assert time_it(case) is LIED
    assert case.notes == ["Timed again, since a first session did not count: The compile baseline took 15 µs beside the candidate."]
    assert len(case.seeds) == 2


def test_whoever_slows_baselines_down_on_purpose_is_found(ends: list[Outcome]) -> None:
    """A second session that says the same is the answer; there is no third."""
    ends[:] = [SLOWED, SLOWED, LIED]
    assert time_it(Known()) is SLOWED
    assert ends == [LIED]


def test_no_other_ending_is_looked_at_again(ends: list[Outcome]) -> None:
    """A lie to the clock is one the first time."""
    ends[:] = [LIED, SLOWED]
    case = Known()
    assert time_it(case) is LIED
    assert (case.notes, len(ends)) == ([], 1)
