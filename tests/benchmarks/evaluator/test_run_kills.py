"""What the benchmark of kills says of the rows that it keeps."""

from __future__ import annotations

import random

from benchmarks.evaluator import run_kills_asking
from benchmarks.evaluator.killing import complaints, paid_twice
from benchmarks.evaluator.run_kills import Span, ending, kills_of, line
from benchmarks.kept_rows import Row
from tests.support.scripted_server import Entry


def _row(*, early: bool = False, asking: bool = False, left: int = 0, differs: tuple[str, ...] = ()) -> Row:
    moment = {"event": 4, "later_s": 0.5, "load": 3.2}
    return {**moment, "early": early, "asking": asking, "left": left, "gone_s": 1.5, "differs": list(differs)}


def test_a_run_that_had_ended_was_not_killed() -> None:
    """It counts for no kill, so that as many are made as were asked for, portion by portion."""
    rows = [_row(early=True, asking=True), _row(asking=True), _row()]
    assert kills_of(rows) == 2
    assert ending(rows).startswith("2 kills, 1 of them with a call in flight: candidates, verdicts")


def test_what_a_kill_changed_or_left_is_told() -> None:
    """Of one kill in its line, and of all of them in the last."""
    rows = [_row(), _row(left=2), _row(left=1, differs=("memory",))]
    assert [complaints(row) for row in rows] == [[], ["processes left"], ["memory", "processes left"]]
    assert line(rows[1]) == "killed 0.5 s after event 4, 2 processes left for 1.5 s more, at a load of 3: processes left"
    assert ending(rows) == "3 kills, 0 of them with a call in flight: {'processes left': 2, 'memory': 1}"


def test_a_run_is_killed_before_its_end() -> None:
    """After the last event only as much time is drawn as a run takes from there to its end."""
    span, draw = Span(2, 3, gap_s=50.0, tail_s=0.5), random.Random(0)
    drawn = [span.drawn(draw) for _ in range(50)]
    assert {moment.events for moment in drawn} == {2, 3}
    assert max(moment.later_s for moment in drawn if moment.events == 3) <= 0.5
    assert max(moment.later_s for moment in drawn if moment.events == 2) > 25


def test_only_kills_with_so_many_calls_in_flight_count() -> None:
    """One that came when fewer were is made up for by another."""
    rows = [{**_row(), "calls": 4, "asking": asking} for asking in (4, 3)]
    assert run_kills_asking.kills_of(rows) == 1


def test_a_question_that_was_answered_twice_was_paid_twice() -> None:
    """One that nobody answered is asked again, and costs nothing more."""
    first = {"number": 0, "role": "coder", "body_hash": "a"}
    asked = [Entry(**first, state=state) for state in ("abandoned", "answered")]
    assert paid_twice(asked) == 0
    assert paid_twice([*asked, Entry(**first, state="answered")]) == 1
