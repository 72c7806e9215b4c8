"""Memory across runs: the second run of a similar operator starts from what the first one taught."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents import AgentTeam
from agents.planner.protocol import Briefing
from agents.profiler.builtin import BuiltinProfiler
from agents.reviewer.builtin import BuiltinReviewer
from agents.samples import case as samples
from graphs.optimize.briefing import lineage, recalled_for
from graphs.optimize.execute import execute
from graphs.optimize.planning import plans_for
from graphs.run.records import Recall
from graphs.run.settings import RunSettings
from graphs.search.protocol import Ask
from kernelwright.screen.facts import candidate_facts, tree_facts
from knowledge.records import StrategyState
from knowledge.store import KnowledgeBase
from knowledge.vectors.embedding import open_embedder
from tests.support.loop import BlockCoder, FirstOptionPlanner, small_services
from tools.records import ROOT, Budget, Plan


def _memory(tmp_path: Path) -> KnowledgeBase:
    return KnowledgeBase(tmp_path / "knowledge", open_embedder("hashing"), seeds=None)


async def _run(tmp_path: Path, name: str) -> None:
    settings = RunSettings(target="h200", budget=Budget(evaluations=8))
    await execute(small_services(tmp_path / name, settings, memory=_memory(tmp_path)), lambda event: None)


async def test_a_second_run_recalls_what_the_first_one_learnt(tmp_path: Path) -> None:
    """An empty memory recalls nothing in the first round of the first run, and the first run's lessons in that of the second."""
    await _run(tmp_path, "first")
    first = small_services(tmp_path / "first").store.get("recall", f"1/{ROOT}", Recall)
    await _run(tmp_path, "second")
    second = small_services(tmp_path / "second").store.get("recall", f"1/{ROOT}", Recall)
    assert first is not None
    assert first.recalled == ()
    assert second is not None
    assert second.recalled
    assert all("first" in r.strategy.source for r in second.recalled)


async def test_the_trace_shows_which_strategy_led_to_which_plan(tmp_path: Path) -> None:
    """A candidate's trace lists what was recalled before its plan, and marks what the plan rests on."""
    await _run(tmp_path, "first")
    await _run(tmp_path, "second")
    store = small_services(tmp_path / "second").store
    plan = next(p for p in store.all("plan", Plan).values() if p.strategies)
    line = next(c for c in tree_facts(store)["candidates"] if c["plan"] == plan.id)
    facts = candidate_facts(store, line["id"])
    assert facts["strategies"] == list(plan.strategies)
    assert set(plan.strategies) <= {one["id"] for one in facts["recalled"]}


async def test_a_failed_step_is_recalled_as_a_warning(tmp_path: Path) -> None:
    """What failed in the first run comes back in the second marked as a warning."""
    await _run(tmp_path, "first")
    await _run(tmp_path, "second")
    recalled = small_services(tmp_path / "second").store.get("recall", f"1/{ROOT}", Recall)
    assert recalled is not None
    warnings = [r for r in recalled.recalled if r.warning]
    assert warnings
    assert all(r.strategy.state is not StrategyState.CONFIRMED for r in warnings)


async def test_learning_again_after_a_kill_changes_nothing(tmp_path: Path) -> None:
    """Replaying a run's outcomes into the same memory leaves its strategies as they are."""
    await _run(tmp_path, "first")
    before = _memory(tmp_path).all()
    (tmp_path / "first" / "checkpoints.db").unlink()
    await _run(tmp_path, "first")
    assert _memory(tmp_path).all() == before


async def test_a_plan_predicts_what_its_action_came_to_before(tmp_path: Path) -> None:
    """A second run of the same operator predicts for the steps that it repeats the very gains that they had."""
    await _run(tmp_path, "first")
    known = {(one.outcome.action.id, one.outcome.situation.bottleneck) for one in _memory(tmp_path).experiences() if one.gain}
    await _run(tmp_path, "second")
    again = [one for one in _memory(tmp_path).experiences() if one.outcome.run == "second" and one.gain]
    repeated = [one for one in again if (one.outcome.action.id, one.outcome.situation.bottleneck) in known]
    assert repeated
    assert all(one.outcome.predicted_gain for one in repeated)
    assert any(one.outcome.predicted_gain == pytest.approx(one.gain) for one in repeated)


async def test_a_lesson_is_not_echoed_to_the_kernel_it_came_from(tmp_path: Path) -> None:
    """What a candidate taught is told in other runs and of other parents, never as advice for that very candidate."""
    await _run(tmp_path, "first")
    services = small_services(tmp_path / "first")
    recalls = services.store.all("recall", Recall)
    assert any(recall.recalled for recall in recalls.values())
    for name, recall in recalls.items():
        own = lineage(services, name.partition("/")[2])
        assert not [r for r in recall.recalled if {trial.candidate for trial in r.strategy.trials} <= own]


class Promising(FirstOptionPlanner):
    """A planner that promises a gain of 6.21, as a lesson of another operator did."""

    async def plan(self, briefing: Briefing, count: int) -> tuple[Plan, ...]:
        """Promise it of every plan."""
        return tuple(plan.model_copy(update={"predicted_gain": 6.21}) for plan in await super().plan(briefing, count))


async def test_no_plan_promises_more_than_the_floor_leaves(tmp_path: Path) -> None:
    """Where the parent has reached 0.625 of the roofline floor, at most 1.6 times its speed is predicted, whoever promised more."""
    team = AgentTeam(planner=Promising(), coder=BlockCoder(), profiler=BuiltinProfiler(), reviewer=BuiltinReviewer())
    services = small_services(tmp_path / "run", team=team)
    services.store.put("profile", ROOT, samples.profile_with("floor_share", 0.625))
    await recalled_for(services, ROOT, 1)
    plans = await plans_for(services, Ask(parent=ROOT), 1, 2, ())
    assert [plan.predicted_gain for plan in plans] == [1.6, 1.6]
