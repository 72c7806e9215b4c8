"""The built-in reviewer: accepts what the interval proves, and says in words what each candidate taught."""

from __future__ import annotations

import pytest

from agents.reviewer.builtin import BuiltinReviewer, review
from tests.agents.reviewer.cases import case, error, estimate, estimated_baselines, failed, passed, timing
from tools.records import Candidate, Correctness, Verdict


async def test_a_proven_win_is_accepted() -> None:
    """A child of 40 µs beside a parent of 50 µs, each known to half a percent, is accepted, and the reason has the interval."""
    judged = await BuiltinReviewer().review(case(passed(timing(40.0)), passed(timing(50.0))))
    assert judged.accepted
    assert judged.verdict is Verdict.PASS
    assert "1.250 times" in judged.reason
    assert "1.241 to 1.259" in judged.reason
    assert judged.reviewer == "builtin"


def test_the_lesson_of_a_win_helps_with_a_similar_operator() -> None:
    """It names the family, what limited the parent, the action with its parameters, the gain, its tier and the device."""
    lesson = review(case(passed(timing(40.0)), passed(timing(50.0)))).lesson
    told = (
        "softmax operator",
        "limited by excess-traffic",
        "tiling with BLOCK_N=1024",
        "was 1.25 times as fast as the parent",
        "in-process",
        "NVIDIA H200",
    )
    assert all(words in lesson for words in told)


def test_a_win_within_the_noise_is_not_accepted() -> None:
    """A gain of 1 % known to 2 % proves nothing."""
    judged = review(case(passed(timing(49.5, spread=0.02)), passed(timing(50.0, spread=0.02))))
    assert not judged.accepted
    assert "within the noise" in judged.reason
    assert "changed nothing that can be told" in judged.lesson


def test_a_slower_child_is_not_accepted() -> None:
    """A child that is slower beyond the noise is said to be slower."""
    judged = review(case(passed(timing(60.0)), passed(timing(50.0))))
    assert not judged.accepted
    assert "slower" in judged.reason
    assert "was slower: 0.83 times as fast as the parent" in judged.lesson


def test_the_same_against_the_same_is_not_accepted() -> None:
    """The same evaluation on both sides is a gain of one, and the same text is never accepted, however its times fell."""
    same = passed(timing(50.0))
    assert not review(case(same, same)).accepted
    luck = review(case(passed(timing(40.0)), passed(timing(50.0)), parent_source="child text"))
    assert not luck.accepted
    assert "nothing to accept" in luck.reason


def test_beating_eager_alone_is_not_enough() -> None:
    """A first child between eager (100 µs) and torch.compile (80 µs) is no gain over what the user would otherwise have."""
    judged = review(case(passed(timing(90.0)), None))
    assert not judged.accepted
    assert judged.gain is not None
    assert judged.gain.value == pytest.approx(80 / 90)


@pytest.mark.parametrize(("child_us", "accepted"), [(40.0, True), (50.0, False), (60.0, False)])
def test_an_estimated_gain_is_accepted_by_its_value(child_us: float, accepted: bool) -> None:
    """Any estimated gain above one counts, and the reason says that nothing was timed."""
    judged = review(case(passed(estimate(child_us)), passed(estimate(50.0)), estimated_baselines()))
    assert judged.accepted is accepted
    assert judged.reason.startswith("Estimated")
    assert "how far the model is off here is not known" in judged.reason
    assert "by the model, estimated, h200" in judged.lesson


def test_a_first_estimate_is_compared_with_estimated_eager() -> None:
    """Without a GPU the parent of a first child is eager execution by the same model."""
    judged = review(case(passed(estimate(40.0)), None, estimated_baselines()))
    assert judged.accepted
    assert judged.gain is not None
    assert judged.gain.value == 2.5


def test_measured_and_estimated_are_never_compared() -> None:
    """A measured child of an estimated parent is not accepted, and has no gain."""
    judged = review(case(passed(timing(1.0)), passed(estimate(50.0))))
    assert not judged.accepted
    assert judged.gain is None
    assert "not compared" in judged.reason
    assert "not compared" in judged.lesson


@pytest.mark.parametrize("verdict", [v for v in Verdict if v not in (Verdict.PASS, Verdict.CHEATED, Verdict.INFRASTRUCTURE)])
def test_a_failure_is_told_by_its_verdict_and_the_telling_line(verdict: Verdict) -> None:
    """Whatever the verdict, the reason and the lesson carry the line of the log that says why, and not the rest."""
    judged = review(case(failed(verdict, log="building\nValueError: shapes differ\n"), passed(timing(50.0))))
    assert (judged.accepted, judged.gain) == (False, None)
    assert judged.reason.startswith(f"{verdict}: the candidate ")
    assert "ValueError: shapes differ" in judged.reason
    assert "ValueError: shapes differ" in judged.lesson
    assert "tiling with BLOCK_N=1024" in judged.lesson
    assert "building" not in judged.reason


def test_wrong_results_are_told_by_their_errors() -> None:
    """A wrong candidate is told by how far off it was and what was allowed."""
    wrong = Correctness(outputs=(error(), error(0.03)), calls=3, sizes=("as written",), executor="gpu")
    judged = review(case(failed(Verdict.WRONG, correctness=wrong, log="noise"), passed(timing(50.0))))
    assert "relative L2 0.03 where 4e-07 is allowed" in judged.reason


def test_a_cheat_is_told_by_its_rule() -> None:
    """The rule that caught it is the detail."""
    judged = review(case(failed(Verdict.CHEATED, rule="reads-clock"), None))
    assert "rule reads-clock" in judged.reason


def test_a_machines_failure_teaches_nothing() -> None:
    """INFRASTRUCTURE says nothing about the candidate, so there is no lesson."""
    judged = review(case(failed(Verdict.INFRASTRUCTURE, log="no device"), None))
    assert judged.lesson == ""
    assert "machine failed" in judged.reason


def test_repairs_that_did_not_help_are_part_of_the_lesson() -> None:
    """A plan that failed after its repairs is a stronger warning."""
    made = case(failed(Verdict.BUILD_FAILED, log="SyntaxError: invalid syntax"), None)
    tried = Candidate(**{**made.candidate.model_dump(), "repairs": 2})
    assert "2 repairs did not help" in review(made.model_copy(update={"candidate": tried})).lesson


def test_doubts_are_concerns_and_change_nothing() -> None:
    """Throttling and library kernels are said beside an accepted win."""
    judged = review(case(passed(timing(40.0, throttled=True), provenance="library"), passed(timing(50.0))))
    assert judged.accepted
    assert len(judged.concerns) == 2


def test_a_time_that_does_not_count_is_told_by_its_note() -> None:
    """What a process warned of, in its log, is not the reason."""
    slowed = "The eager baseline took 52 µs beside the candidate, 2.25 times as long as without its process (23 µs before, 23 µs after)."
    judged = review(case(failed(Verdict.TIMING_INCONSISTENT, notes=(slowed,), log="UserWarning: CUDA initialization"), None))
    assert slowed in judged.reason
    assert "UserWarning" not in judged.lesson
