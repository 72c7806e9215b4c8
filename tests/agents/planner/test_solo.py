"""The planner of a team of one."""

from __future__ import annotations

from agents.planner.solo import SoloPlanner
from agents.records.standing import Attempt, Standing
from agents.samples import case as samples
from tools.records import ROOT, Action, ActionKind, Verdict


def _tried(*actions: Action) -> Standing:
    return Standing(attempts=tuple(Attempt(candidate="c", parent=ROOT, action=one, verdict=Verdict.PASS) for one in actions))


async def test_built_and_designed_take_turns() -> None:
    """The first plan is built-in, the next the model's own design, and so on; each design has its number in the run."""
    plans = await SoloPlanner().listed(samples.briefing(free=True), 4)
    assert [plan.action.kind is ActionKind.REWRITE for plan in plans] == [False, True, False, True]
    assert [plan.action.parameters for plan in plans[1::2]] == [{"attempt": 1}, {"attempt": 2}]


async def test_one_design_of_a_parent_is_written_at_a_time() -> None:
    """Two designs that know the same would be the same: the rest of a batch is built, or left."""
    assert [one.action.kind is ActionKind.REWRITE for one in await SoloPlanner().plan(samples.briefing(free=True), 3)] == [
        False,
        True,
        False,
    ]
    assert len(await SoloPlanner().plan(samples.briefing(free=True, options=()), 3)) == 1


async def test_designs_are_numbered_through_the_run() -> None:
    """Designs that have ended, and those planned in this round, are counted: none is planned twice."""
    first = Action(kind=ActionKind.REWRITE, region="Model", parameters={"attempt": 1})
    standing = _tried(samples.FUSION, first)
    plans = await SoloPlanner().listed(samples.briefing(free=True, options=(), standing=standing, begun=1), 2)
    assert [plan.action.parameters["attempt"] for plan in plans] == [3, 4]


async def test_a_kernel_of_free_text_is_the_models() -> None:
    """Where nothing can be built, on a kernel that a model wrote, every plan is a design."""
    plans = await SoloPlanner().plan(samples.briefing(free=True, options=()), 2)
    assert {plan.action.kind for plan in plans} == {ActionKind.REWRITE}


async def test_a_search_method_has_its_way() -> None:
    """Asked for other kinds it designs nothing, and asked for rewrites it builds nothing."""
    tiling = await SoloPlanner().plan(samples.briefing(free=True, kinds=(ActionKind.TILING,)), 2)
    assert {plan.action.kind for plan in tiling} == {ActionKind.TILING}
    rewrites = await SoloPlanner().plan(samples.briefing(free=True, kinds=(ActionKind.REWRITE,)), 2)
    assert {plan.action.kind for plan in rewrites} == {ActionKind.REWRITE}


async def test_a_built_in_coder_gets_no_designs() -> None:
    """A coder that only builds is asked for nothing else."""
    assert all(plan.action.kind is not ActionKind.REWRITE for plan in await SoloPlanner().plan(samples.briefing(), 4))
