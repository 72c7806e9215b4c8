"""Sessions of one candidate: when there is a second one, and whose word counts."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tools.evaluation.processes.room import Room
from tools.evaluation.supervisor.checking.correctness import Outcome
from tools.evaluation.supervisor.timed.sessions import Ahead, Tries
from tools.records import Seeds, Verdict

SLOWED = Outcome(Verdict.TIMING_INCONSISTENT, notes=["The compile baseline took 15 µs beside the candidate."], by_chance=True)
LIED = Outcome(Verdict.TIMING_INCONSISTENT, notes=["Its events say 4 µs, but it answered 90 µs later."])


@dataclass
class Known:
    """What an evaluation knows."""

    request: Any = None
    build: Any = None
    notes: list[str] = field(default_factory=list)
    seeds: list[Seeds] = field(default_factory=list)

    def part(self, _: str) -> AbstractContextManager[None]:
        """Take nothing down."""
        return nullcontext()


class Session:
    """A session with an ending, and what the oracle says of its calls."""

    seeds = Seeds(purpose="time", size="as written", shake=None, calls=())

    def __init__(self, coming: list[Any], wrong: Outcome | None = None) -> None:
        self._coming, self._wrong = coming, wrong
        self.notes = ["2 % was not judged."] if wrong else []
        self.prepared = 0

    def another(self) -> Session:
        """Make the next one."""
        return Session(self._coming)

    def prepare(self, held: ExitStack) -> None:
        """Count."""
        self.prepared += 1

    def run(self, *_: Any) -> Any:
        """End as was said."""
        return self._coming.pop(0)

    def wrong(self) -> Outcome | None:
        """Say what was said."""
        return self._wrong


def time_it(case: Any, coming: list[Any], wrong: Outcome | None = None) -> Any:
    """Time some candidate, and have what was called judged."""
    nothing: Any = None
    case.request = SimpleNamespace(source="", timeout_s=1.0)
    first: Any = Session(coming, wrong)
    tries = Tries(first)
    tries.measure(case, nothing, ExitStack())
    return tries.judged(case)


def test_a_slowed_baseline_is_looked_at_again() -> None:
    """What counts is the second session; a note says why there was one, and both sessions' seeds are told."""
    case = Known()
    assert time_it(case, [SLOWED, LIED]) is LIED
    assert case.notes == ["Timed again, since a first session did not count: The compile baseline took 15 µs beside the candidate."]
    assert len(case.seeds) == 2


def test_whoever_slows_baselines_down_on_purpose_is_found() -> None:
    """A second session that says the same is the answer; there is no third."""
    ends = [SLOWED, SLOWED, LIED]
    assert time_it(Known(), ends) is SLOWED
    assert ends == [LIED]


def test_no_other_ending_is_looked_at_again() -> None:
    """A lie to the clock is one the first time."""
    ends = [LIED, SLOWED]
    case = Known()
    assert time_it(case, ends) is LIED
    assert (case.notes, len(ends)) == ([], 1)


def test_wrong_answers_of_a_timed_call_outrank_every_time() -> None:
    """The oracle judges after all was measured, the first session too where a second one has counted."""
    wrong = Outcome(Verdict.WRONG, notes=["1 of 4 timed calls gave a wrong answer."])
    case = Known()
    assert time_it(case, [LIED], wrong) is wrong
    assert case.notes == ["2 % was not judged."]
    assert time_it(Known(), [SLOWED, LIED], wrong) is wrong


class Counted:
    """Sessions that count how often their inputs were made."""

    def __init__(self) -> None:
        self.prepared = 0

    def prepare(self) -> None:
        """Count."""
        self.prepared += 1


def prepared(room: Room, share: float, *, times: int = 1) -> tuple[bool, int]:
    """Have the inputs of a candidate made in a room, and say whether there was enough, and how often they were made."""
    sessions: Any = Counted()
    with Ahead(room, share, sessions) as ahead:
        for _ in range(times):
            ahead.prepare()
        return ahead.has_room, sessions.prepared


def test_who_waits_to_be_checked_takes_no_room_for_its_inputs() -> None:
    """Room is taken when the inputs are made, once for a candidate however often it was checked, and given back at its end."""
    room, waiting = Room(1.0), Ahead(Room(1.0), 1.0, SimpleNamespace())
    with waiting:
        assert not waiting.has_room
    assert [prepared(room, 0.75, times=2) for _ in range(2)] == [(True, 2)] * 2


def test_who_finds_no_room_has_its_inputs_made_alone() -> None:
    """Nothing is made ahead for a candidate whose inputs have no room beside those of others."""
    room = Room(1.0)
    with room.taken(0.5):
        assert prepared(room, 0.75) == (False, 0)
