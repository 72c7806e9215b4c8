"""Steering a run while it works, on the small landscape of tests/support/loop.py."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.planner.builtin import BuiltinPlanner
from agents.samples import case
from graphs.optimize.execute import execute
from graphs.replay.services import _copy
from graphs.run.context import Services
from graphs.run.records import Delivery
from graphs.run.settings import RunSettings
from graphs.run.standing import standing_of
from graphs.run.steering import hints, is_paused, moments, steer, take
from tests.support.loop import small_services
from tools.errors import UserError
from tools.records import Budget, Evaluation, Plan, Verdict
from tools.tracing import RunStore

Event = dict[str, Any]


def _services(folder: Path, evaluations: int = 5) -> Services:
    settings = RunSettings(target="h200", memory=False, devices="interpreter", budget=Budget(evaluations=evaluations))
    return small_services(folder, settings)


async def _run(services: Services, name: str = "", do: Callable[[Event], None] = lambda event: None) -> list[Event]:
    """See a run through; call `do` with the first event of that name."""
    events: list[Event] = []

    def listen(event: Event) -> None:
        if event["event"] == name and all(one["event"] != name for one in events):
            do(event)
        events.append(event)

    await execute(services, listen)
    return events


def _hint(services: Services, text: str) -> None:
    steer(services.store, "hint", text)


def _speed(services: Services) -> Callable[[str], float]:
    """What orders candidates by how fast they are."""
    return lambda name: getattr(services.evaluation(name), "speedup", None) or 0.0


def _right(store: RunStore) -> list[str]:
    return [one.candidate for one in store.all("evaluation", Evaluation).values() if one.verdict is Verdict.PASS]


async def test_a_paused_run_waits_and_then_goes_on(tmp_path: Path) -> None:
    """Nothing is planned while it is paused, and the time is not the run's."""
    services = _services(tmp_path / "run")
    steer(services.store, "pause")

    def go_on(event: Event) -> None:
        assert services.store.all("plan", Plan) == {}
        asyncio.get_running_loop().call_later(0.6, lambda: steer(services.store, "continue"))

    events = await _run(services, "paused", go_on)
    assert [event["event"] for event in events].index("continued") < [event["event"] for event in events].index("planned")
    first, second = services.store.sessions()
    assert second[0] - first[1] > 0.5


async def test_a_pause_outlives_the_process(tmp_path: Path) -> None:
    """A run that was stopped while it was paused is paused when it is resumed."""
    steer(_services(tmp_path / "run").store, "pause")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(_run(_services(tmp_path / "run")), 0.6)
    assert is_paused(RunStore(tmp_path / "run"))


async def test_hints_reach_those_who_plan_and_write_from_the_next_round(tmp_path: Path) -> None:
    """A hint is in force from the round after it was given, in the words that planner and coder are shown, and after a resume."""
    services = _services(tmp_path / "run")
    await _run(services, "planned", lambda event: _hint(services, "  Keep the\n row in registers. "))
    assert list(moments(services.store).values()) == ["round 2"]
    assert standing_of(_services(tmp_path / "run")).hints == ("Keep the row in registers.",)


@pytest.mark.parametrize("role", ["planner", "coder"])
def test_prompts_show_hints(role: str) -> None:
    """Planner's and coder's questions have each hint as an item."""
    from agents.coder import llm as coder
    from agents.planner import llm as planner

    told = case.standing().model_copy(update={"hints": ("Use two stages.",)})
    if role == "planner":
        text = planner.PROMPTS.render("plan", **planner.view(case.briefing(standing=told), 1))
    else:
        text = coder.PROMPTS.render("design", language="triton", start="", **coder.view(case.task().model_copy(update={"standing": told})))
    assert "\n- Use two stages.\n" in text


async def test_the_built_in_planner_says_that_it_reads_no_hints() -> None:
    """Its plans say so where there are any."""
    told = case.standing().model_copy(update={"hints": ("Use two stages.",)})
    (plain,), (hinted,) = [await BuiltinPlanner().plan(case.briefing(standing=one), 1) for one in (case.standing(), told)]
    assert "reads no hints" in hinted.rationale
    assert "reads no hints" not in plain.rationale


async def test_a_vetoed_candidate_is_no_parent_and_not_delivered(tmp_path: Path) -> None:
    """From the next round on nothing is planned on it, and what is delivered is another."""
    services = _services(tmp_path / "run", 8)
    vetoed: list[str] = []
    parents: list[str] = []

    def listen(event: Event) -> None:
        if event["event"] == "learnt" and not vetoed and (right := _right(services.store)):
            vetoed.append(steer(services.store, "veto", max(right, key=_speed(services))).text)
        if event["event"] == "planned" and moments(services.store):
            parents.append(services.store.get("plan", event["plan"], Plan).parent)  # type: ignore[union-attr]

    await execute(services, listen)
    (delivery,) = services.store.all("delivery", Delivery).values()
    assert vetoed
    assert parents
    assert vetoed[0] not in {*parents, delivery.candidate}
    assert services.store.candidate(delivery.candidate) is not None


async def test_a_pinned_candidate_is_the_next_parent(tmp_path: Path) -> None:
    """The round after works on it and on nothing else, slow as it may be."""
    services = _services(tmp_path / "run", 12)
    pinned: list[str] = []

    def listen(event: Event) -> None:
        if event["event"] == "reviewed" and len(right := _right(services.store)) >= 2 and not pinned:
            pinned.append(steer(services.store, "pin", min(right, key=_speed(services))[:9]).text)

    await execute(services, listen)
    (when,) = moments(services.store).values()
    asked = [span.output for span in services.store.spans() if (span.node, span.subject) == ("recall", when)]
    assert [json.loads(one)["parent"] for one in json.loads(asked[0] or "")["asks"]] == pinned


async def test_the_action_of_a_vetoed_plan_is_not_tried_again(tmp_path: Path) -> None:
    """Neither on its parent nor on another."""
    services = _services(tmp_path / "run", 8)
    vetoed: list[Plan] = []

    def veto(event: Event) -> None:
        plan = services.store.get("plan", event["plan"], Plan)
        assert plan is not None
        vetoed.append(plan)
        steer(services.store, "veto", plan.id)

    await _run(services, "planned", veto)
    actions = [plan.action.id for plan in services.store.all("plan", Plan).values()]
    assert actions.count(vetoed[0].action.id) == 1


def test_what_cannot_be_asked_is_refused(tmp_path: Path) -> None:
    """Unknown ids, empty hints, going on without a pause: one line each, and nothing is recorded."""
    store = _services(tmp_path / "run").store
    for kind, text, said in (
        ("hint", " ", "1 to 1000 characters"),
        ("hint", "x" * 1001, "1 to 1000 characters"),
        ("veto", "zzz", "0 ids of candidates or plans"),
        ("pin", "", "0 ids of candidates"),
        ("continue", "", "is not paused"),
    ):
        with pytest.raises(UserError, match=said):
            steer(store, kind, text)  # type: ignore[arg-type]
    assert hints(store) == ()
    assert take(store, "round 1") == []


async def test_a_wrong_candidate_cannot_be_pinned_and_an_ended_run_not_be_steered(tmp_path: Path) -> None:
    """Only what passed can be a parent; of a run that has ended, a fork is offered."""
    services = _services(tmp_path / "run")

    def look(event: Event) -> None:
        name = next(name for name in services.store.names("candidate") if name not in _right(services.store))
        with pytest.raises(UserError, match="only a right one"):
            steer(services.store, "pin", name)

    await _run(services, "reviewed", look)
    with pytest.raises(UserError, match="kernelwright fork run"):
        steer(services.store, "hint", "too late")


async def test_what_was_asked_comes_into_force_in_the_same_round_of_a_repetition(tmp_path: Path) -> None:
    """A repetition is told in its second round what the run was told in its second."""
    services = _services(tmp_path / "run")
    await _run(services, "planned", lambda event: _hint(services, "Mind the tail."))
    again = _copy(services.store, tmp_path / "again")
    assert take(again, "round 1") == []
    assert [one.text for one in take(again, "round 2")] == ["Mind the tail."]
