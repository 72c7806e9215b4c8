"""One kernel at several shapes: all are judged, and times are added up by their weights."""

import asyncio

import pytest

from tests.support.makers import passed, problem, sample
from tools.evaluation.weighted import added, baselines_of_shapes, evaluate_shapes
from tools.hardware import load_sheet
from tools.records import Baselines, Estimate, Evaluation, EvaluationRequest, Problem, ProblemShape, RawTimes, Tier, Timing, Verdict
from tools.reports.evaluation import report


def shaped(**weights: float) -> Problem:
    """A problem with a shape for each weight."""
    one = problem([(64, 64)])
    shapes = tuple(ProblemShape(name=name, weight=weight, sizes={name: 1}, abi=one.abi, work=one.work) for name, weight in weights.items())
    return one.model_copy(update={"shapes": shapes})


def request(of: Problem) -> EvaluationRequest:
    """A job with two small sizes."""
    return EvaluationRequest(problem=of, variants=(of.at(of.shapes[0]),) * 2, candidate="c", source="", target=load_sheet("h200"))


def estimated(us: float, eager: float = 30.0) -> Evaluation:
    """A right candidate of so many microseconds."""
    return passed(estimate=Estimate(target="h200", candidate_us=us, eager_us=eager, floor_us=1.0, model="m"), seconds=2.0)


def timed(candidate: tuple[float, ...], eager: tuple[float, ...], tier: Tier = Tier.BRACKETED) -> Evaluation:
    """A right candidate with raw times."""
    mine, theirs = (sample(sorted(times)[len(times) // 2]) for times in (candidate, eager))
    ratio = theirs.median_us / mine.median_us
    return passed(
        timing=Timing(
            tier=tier, candidate=mine, baselines={"eager": theirs}, speedups={"eager": (ratio, ratio, ratio)}, device="d",
            raw=RawTimes(candidate=candidate, baselines={"eager": eager}),
        )
    )  # fmt: skip


def test_the_objective_is_the_weighted_time_and_the_worst_shape_is_told() -> None:
    """A shape that counts three times as often counts three times as much."""
    whole = added(shaped(prefill=1, decode=3).shapes, [estimated(20.0), estimated(4.0, eager=2.0)])
    assert whole.time_us == pytest.approx(8.0)
    assert whole.speedup == pytest.approx((30.0 + 3 * 2.0) / 4 / 8.0)
    assert whole.worst_shape is not None
    assert (whole.worst_shape.name, whole.worst_shape.evaluation.speedup) == ("decode", 0.5)


def test_intervals_of_measured_times_are_of_the_weighted_sums() -> None:
    """Turn by turn, as far as each shape was timed."""
    found = added(shaped(a=1, b=1).shapes, [timed((10.0,) * 9, (30.0,) * 9), timed((20.0,) * 7, (30.0,) * 7)])
    assert found.timing is not None
    assert found.timing.speedups["eager"] == pytest.approx((2.0, 2.0, 2.0))


def test_a_sum_is_trusted_as_its_least_trusted_part() -> None:
    """One shape that only the candidate's own process timed makes the sum such a figure."""
    found = added(shaped(a=1, b=1).shapes, [timed((10.0,), (30.0,)), timed((20.0,), (30.0,), Tier.IN_PROCESS)])
    assert found.timing is not None
    assert found.timing.tier is Tier.IN_PROCESS
    assert not found.timing.is_vouched_for


def test_a_sum_of_times_that_sealed_launches_vouch_for_is_vouched_for() -> None:
    """Though one of them is that of the candidate's own process: its launches alone take no longer."""
    slow = timed((20.0,), (30.0,), Tier.IN_PROCESS)
    assert slow.timing is not None
    sealed = slow.model_copy(update={"timing": slow.timing.model_copy(update={"sealed_us": 18.0})})
    found = added(shaped(a=1, b=1).shapes, [timed((10.0,), (30.0,)), sealed])
    assert found.timing is not None
    assert (found.timing.tier, found.timing.sealed_us) == (Tier.IN_PROCESS, 14.0)
    assert found.timing.is_vouched_for


def test_a_candidate_that_fails_at_one_shape_fails() -> None:
    """The note says which one it was, and all that was spent is counted; after the first no other shape is tried."""
    asked: list[EvaluationRequest] = []

    async def judge(job: EvaluationRequest) -> Evaluation:
        asked.append(job)
        return estimated(5.0) if "a" in job.problem.sizes else Evaluation(candidate="c", verdict=Verdict.WRONG, seconds=3.0)

    found = asyncio.run(evaluate_shapes(judge, request(shaped(a=1, b=1, c=1))))
    assert (found.verdict, found.notes, found.seconds) == (Verdict.WRONG, ("At the shape 'b'.",), 8.0)
    assert [len(job.variants) for job in asked] == [2, 1, 1]
    asked.clear()
    assert asyncio.run(evaluate_shapes(judge, request(shaped(b=1, a=1)))).verdict is Verdict.WRONG
    assert len(asked) == 1


def test_other_shapes_are_judged_side_by_side_and_end_together() -> None:
    """Each waits for the other here; where one raises, nothing of the others goes on."""
    last = asyncio.Event()

    async def judge(job: EvaluationRequest) -> Evaluation:
        if "c" in job.problem.sizes:
            last.set()
        if "b" in job.problem.sizes:
            await last.wait()
        return estimated(5.0)

    assert asyncio.run(evaluate_shapes(judge, request(shaped(a=1, b=1, c=1)))).verdict is Verdict.PASS

    async def failing(job: EvaluationRequest) -> Evaluation:
        if "b" in job.problem.sizes:
            raise ZeroDivisionError
        await asyncio.sleep(60.0 if "c" in job.problem.sizes else 0.0)
        return estimated(5.0)

    with pytest.raises(ZeroDivisionError):
        asyncio.run(evaluate_shapes(failing, request(shaped(a=1, b=1, c=1))))


def test_what_is_only_compiled_is_compiled_once() -> None:
    """At the first shape: nothing of the others would differ."""
    asked: list[EvaluationRequest] = []

    async def judge(job: EvaluationRequest) -> Evaluation:
        asked.append(job)
        return Evaluation(candidate="c", verdict=Verdict.BUILT)

    asyncio.run(evaluate_shapes(judge, request(shaped(a=1, b=1)).model_copy(update={"depth": "build"})))
    assert [job.problem.sizes for job in asked] == [{"a": 1}]


def test_the_reference_is_timed_at_every_shape() -> None:
    """And its time is that of a call on average."""

    async def of(one: Problem) -> Baselines:
        us = 10.0 if "a" in one.sizes else 40.0
        return Baselines(
            tier=Tier.ESTIMATED, estimate=Estimate(target="h", candidate_us=us, eager_us=us, floor_us=1.0, model="m"), device="h"
        )

    assert asyncio.run(baselines_of_shapes(of, shaped(a=2, b=1))).best_us == pytest.approx(20.0)


def test_the_shape_that_takes_most_of_the_time_by_its_weight_is_the_dominant_one() -> None:
    """A profile is of that one: launches and times of different shapes do not mix."""
    of = shaped(prefill=1, decode=10)
    whole = added(of.shapes, [estimated(20.0), estimated(4.0)])
    problem_there, there = whole.dominant(of)
    assert (problem_there.sizes, there.time_us) == ({"decode": 1}, 4.0)
    alone = estimated(3.0)
    assert alone.dominant(of.at(of.shapes[0]))[1] is alone
    said = report(of, whole, load_sheet("h200"), "")
    assert "At the shape prefill (weight 1): 20.0 µs, 1.50x the best baseline there." in said
