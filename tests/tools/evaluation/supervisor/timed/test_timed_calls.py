"""What the oracle's word on timed calls comes to."""

from __future__ import annotations

from tools.evaluation.supervisor.timed.timed_calls import not_judged, wrong_calls
from tools.evaluation.wire.jobs.oracle import CallVerdict, OracleAnswer
from tools.records import OutputError, Problem, Verdict


def answer(*left_out: float, error: float = 0.0) -> OracleAnswer:
    """The first call, which is not timed, and others of which so much was left out; the last is this wrong."""
    none = OutputError(
        output="output0",
        relative_l2=0,
        worst_row=0,
        reference_relative_l2=0,
        reference_worst_row=0,
        limit_relative_l2=0,
        limit_worst_row=0,
    )
    calls = [CallVerdict(call_plan=0, call=at, group="as made", outputs=(none,), left_out=(out,)) for at, out in enumerate([0, *left_out])]
    calls[-1] = calls[-1].model_copy(update={"outputs": (none.model_copy(update={"relative_l2": error, "worst_row": error}),)})
    return OracleAnswer(calls=tuple(calls))


def test_one_timed_call_that_could_be_judged_is_enough(problem: Problem) -> None:
    """A note says how much was not."""
    assert wrong_calls(answer(1.0, 0.25), problem) is None
    told = "Of timed calls, up to 25.0% of an output depends on how equal elements are put in order, and was not judged."
    assert not_judged(answer(0.25, 0.0)) == [told]
    assert not_judged(answer(0.0)) == []


def test_nothing_passes_of_which_no_timed_call_could_be_judged(problem: Problem) -> None:
    """The first call, which is not timed, does not count; and it says nothing about the candidate."""
    outcome = wrong_calls(answer(1.0, 1.0), problem)
    assert outcome is not None
    assert outcome.verdict is Verdict.INFRASTRUCTURE
    assert "No timed call could be judged" in outcome.notes[0]


def test_a_wrong_timed_call_is_wrong_whatever_was_left_out(problem: Problem) -> None:
    """One that is off where it was judged."""
    outcome = wrong_calls(answer(1.0, 0.5, error=0.1), problem)
    assert outcome is not None
    assert outcome.verdict is Verdict.WRONG
    assert outcome.notes[0] == "1 of 3 timed calls that were checked gave a wrong answer at as written."
