"""Where a run stands, as planner and coder are told it."""

from __future__ import annotations

import agents.planner.llm as planner
from agents.coder.modelled import regions_in_words
from agents.prompting.frame import Frame
from agents.records.expectation import Expectation
from agents.records.standing import Attempt, Standing
from agents.samples import case as samples
from tools.codegen import Region, Schedule
from tools.records import ROOT, Action, ActionKind, Verdict


def attempt(name: str, time_us: float, tier: str = "sealed", verdict: Verdict = Verdict.PASS) -> Attempt:
    """An attempt on the reference."""
    return Attempt(candidate=name, parent=ROOT, action=samples.FUSION, verdict=verdict, time_us=time_us, tier=tier)


def test_the_best_is_right_and_of_one_kind_of_time() -> None:
    """Estimated and measured times are not compared, and what is wrong is never the best."""
    attempts = (
        attempt("guess", 1.0, "estimated"),
        attempt("slow", 30.0),
        attempt("fast", 20.0),
        attempt("wrong", 5.0, verdict=Verdict.WRONG),
    )
    best = Standing(attempts=attempts).best
    assert best is not None
    assert best.candidate == "fast"
    assert Standing().best is None


def test_an_attempt_is_told_by_its_idea() -> None:
    """A design is its idea, another step its action."""
    action = Action(kind=ActionKind.REWRITE, region="f", parameters={"attempt": 1})
    assert Attempt(candidate="c", parent=ROOT, action=action, idea="One pass.", verdict=None).words == "One pass."
    assert Attempt(candidate="c", parent=ROOT, action=action, verdict=None).words == "a design of its own"
    assert attempt("c", 1.0).words == str(samples.FUSION)


def test_the_planner_sees_times_margins_regions_and_what_is_expected() -> None:
    """A planner is told the baselines, the floor, the best kernel, the limits of the errors, what a region is, and what options promise."""
    expected = {samples.FUSION.id: Expectation(words="the cost model expects 1.70x", gain=1.7)}
    briefing = samples.briefing(standing=samples.standing(), made_of={"r0": "rows: softmax"}, expected=expected)
    text = planner.PROMPTS.opening("plan", "planner", Frame(), **planner.view(briefing, 2))[1].content
    for told in (
        "the reference, eager: 41 us (bracketed)",
        "roofline leaves: 10 us",
        "the best right kernel so far: 0123456789abcdef, 28 us",
        "limits of output0: relative L2 error 4e-07",
        "errors 0.5 of 4e-07 allowed",
        "- r0: rows: softmax",
        "Estimate: the cost model expects 1.70x.",
    ):
        assert told in text


def test_regions_are_described_by_what_they_run() -> None:
    """A parent's regions are named by template and operators; free text has none."""
    schedule = Schedule(regions=(Region(id="r0", nodes=("mul", "softmax"), template="rows", parameters={"ROWS": 2}),))
    parent = samples.candidate()
    assert regions_in_words(samples.problem(), parent.model_copy(update={"schedule": schedule.model_dump_json()})) == {
        "r0": "rows: mul, softmax"
    }
    assert regions_in_words(samples.problem(), parent) == {}
