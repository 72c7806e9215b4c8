"""Search methods in the real graph, on the small landscape of tests/support/loop.py."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from agents.coder.protocol import CodingTask, Draft, Refusal
from agents.planner.protocol import Briefing
from graphs.optimize.execute import execute
from graphs.optimize.survey import Surveyed
from graphs.run.settings import RunSettings
from graphs.search import METHODS
from graphs.search.protocol import SearchSettings
from tests.support.killed_run import KilledRuns
from tests.support.loop import BlockCoder, small_services, small_team
from tools.records import ROOT, Action, ActionKind, Budget, Evaluation, Plan
from tools.tracing import RunStore

KILLED = -9


def _settings(name: str, evaluations: int = 30) -> RunSettings:
    return RunSettings(
        target="h200", memory=False, search=name, budget=Budget(evaluations=evaluations), search_settings=SearchSettings(seed=2)
    )


@pytest.mark.parametrize("name", sorted(METHODS))
async def test_every_method_finds_the_best_block_in_the_graph(tmp_path: Path, name: str) -> None:
    """Within the budget the graph delivers a confirmed kernel of at least 2.2 times eager by any method, and evaluates nothing twice."""
    services = small_services(tmp_path / "run", _settings(name))
    delivery = await execute(services, lambda event: None)
    assert delivery.candidate != ROOT
    evaluation = services.evaluation(delivery.candidate)
    assert evaluation is not None
    assert (evaluation.speedup or 0.0) >= 2.2
    asked = (tmp_path / "run/evaluations.log").read_text().splitlines()
    assert len(asked) == len(set(asked)) == len(services.store.all("evaluation", Evaluation))


async def test_a_surveyed_step_keeps_its_reasons(tmp_path: Path) -> None:
    """A plan that a method drew from a survey has the survey's rationale and planner."""
    services = small_services(tmp_path / "run", _settings("macro", 6))
    await execute(services, lambda event: None)
    plans = services.store.all("plan", Plan).values()
    offers = services.store.all("survey", Surveyed)
    assert plans
    assert all(any(o.action == p.action and o.rationale == p.rationale for o in offers[p.parent].offers) for p in plans)


async def test_a_gain_below_the_floor_is_not_delivered(tmp_path: Path) -> None:
    """With a floor above everything the landscape has, the reference is kept and the reason names the floor."""
    settings = _settings("tree", 10).model_copy(update={"floor": 3.0})
    delivery = await execute(small_services(tmp_path / "run", settings), lambda event: None)
    assert delivery.candidate == ROOT
    assert "floor of 3x" in delivery.reason


@pytest.mark.slow
@pytest.mark.parametrize("search", ["world-model", "memory"])
def test_a_killed_run_asks_what_an_undisturbed_one_asks(runs: KilledRuns, tmp_path: Path, search: str) -> None:
    """Killed on leaving `recall`, `plan` and `review`, then resumed: the same plans and surveys, and the same delivery."""
    undisturbed, killed = tmp_path / "a/run", tmp_path / "b/run"
    expected = runs.run(undisturbed, "-", "enter", "", search)
    assert expected.returncode == 0, expected.stderr
    for node in ("recall", "plan", "review"):
        assert runs.run(killed, node, "leave", "", search).returncode == KILLED
    last = runs.run(killed, "-", "enter", "", search)
    assert last.stdout == expected.stdout, last.stderr
    one, other = RunStore(undisturbed), RunStore(killed)
    assert one.all("plan", Plan) == other.all("plan", Plan)
    assert one.all("survey", Surveyed) == other.all("survey", Surveyed)


class EndlessPlanner:
    """Always has another plan."""

    name = "endless"

    async def plan(self, briefing: Briefing, count: int) -> tuple[Plan, ...]:
        """Plan sizes that nobody has."""
        numbers = range(1000 + len(briefing.tried), 1000 + len(briefing.tried) + count)
        actions = [Action(kind=ActionKind.TILING, region="r0", parameters={"BLOCK": number}) for number in numbers]
        return tuple(Plan(parent=briefing.parent, action=action, rationale="Another.", planner=self.name) for action in actions)


class RefusingCoder(BlockCoder):
    """Writes nothing."""

    async def write(self, task: CodingTask) -> Draft | Refusal:
        """Refuse."""
        return Refusal(reason="It cannot be written.")


async def test_a_run_whose_plans_lead_to_nothing_ends(tmp_path: Path) -> None:
    """Where a planner never runs out of plans and the coder refuses all, the run ends by itself and keeps the reference."""
    team = dataclasses.replace(small_team(RefusingCoder()), planner=EndlessPlanner())
    delivery = await execute(small_services(tmp_path / "run", _settings("tree"), team=team), lambda event: None)
    assert delivery.candidate == ROOT
    assert delivery.ended == "no plan led to a new candidate in 12 rounds"
