"""The built-in planner's choices."""

from __future__ import annotations

import pytest

from agents.planner.builtin import BuiltinPlanner
from agents.planner.scores import SCORES
from agents.samples import case as samples
from tools.records import Action, ActionKind, Bottleneck, Verdict

PLANNER = BuiltinPlanner()


async def test_fuses_first_where_traffic_is_in_excess() -> None:
    """Excess traffic is met by fusion before anything else, and the reason says so in words."""
    (plan,) = await PLANNER.plan(samples.briefing(), 1)
    assert plan.action == samples.FUSION
    assert "Moves 2.0x its compulsory bytes" in plan.rationale
    assert "excess-traffic" in plan.rationale
    assert plan.predicted_gain is None


async def test_plans_are_distinct_and_varied() -> None:
    """Plans of one batch differ, and not only in a number."""
    plans = await PLANNER.plan(samples.briefing(), 3)
    assert len({p.action.id for p in plans}) == 3
    assert len({p.action.kind for p in plans}) > 1


async def test_same_briefing_same_plans() -> None:
    """The choice is deterministic."""
    assert await PLANNER.plan(samples.briefing(), 4) == await PLANNER.plan(samples.briefing(), 4)


@pytest.mark.parametrize(
    ("bottleneck", "action"),
    [
        (Bottleneck.REGISTERS, samples.TILING[1]),
        (Bottleneck.PARALLELISM, samples.TILING[1]),
        (Bottleneck.MEMORY_LATENCY, samples.TILING[2]),
        (Bottleneck.LAUNCH, samples.FUSION),
    ],
)
async def test_bottleneck_decides(bottleneck: Bottleneck, action: Action) -> None:
    """Too few programs or registers ask for the next smaller tile, latency for the next larger one, launches for fusion."""
    (plan,) = await PLANNER.plan(samples.briefing(profile=samples.profile(bottleneck)), 1)
    assert plan.action == action


async def test_recalled_strategy_outranks_the_prior() -> None:
    """A strategy that gained moves its action up, is cited, and gives the predicted gain."""
    advice = samples.strategy(ActionKind.TILING, 2.4, parameters={"ROWS": 16})
    (plan,) = await PLANNER.plan(samples.briefing(recalled=(samples.recalled(advice, score=0.95),)), 1)
    assert plan.action == samples.TILING[3]
    assert plan.strategies == (advice.id,)
    assert plan.predicted_gain == 2.4
    assert advice.id in plan.rationale


async def test_what_memory_foretells_is_predicted() -> None:
    """Memory weighs old trials less, so what it foretells goes before the median of all of them."""
    advice = samples.strategy(ActionKind.TILING, 2.4, parameters={"ROWS": 16})
    recalled = samples.recalled(advice, score=0.95).model_copy(update={"foretold": 1.3})
    (plan,) = await PLANNER.plan(samples.briefing(recalled=(recalled,)), 1)
    assert (plan.strategies, plan.predicted_gain) == ((advice.id,), 1.3)


async def test_strategies_for_other_kinds_are_not_cited() -> None:
    """What does not speak for the action is not cited for it."""
    advice = samples.strategy(ActionKind.PIPELINE)
    (plan,) = await PLANNER.plan(samples.briefing(recalled=(samples.recalled(advice),)), 1)
    assert plan.strategies == ()


@pytest.mark.parametrize("parameters", [{}, {"cuda_graph": True}])
async def test_advice_of_a_broad_kind_is_not_cited_for_something_else(parameters: dict[str, bool]) -> None:
    """Advice to replay a graph is a launch action, but no reason for another number of warps."""
    advice = samples.strategy(ActionKind.LAUNCH, 4.0, parameters=parameters)
    plans = await PLANNER.plan(samples.briefing(options=samples.LAUNCH, recalled=(samples.recalled(advice, 0.9),)), 3)
    assert all(p.strategies == () and p.predicted_gain is None for p in plans)


async def test_warning_speaks_against() -> None:
    """A warning about fusion makes something else come first, and is not cited."""
    warning = samples.recalled(samples.strategy(ActionKind.FUSION, 0.5), score=-0.05, warning=True)
    (other,) = await PLANNER.plan(samples.briefing(recalled=(warning,)), 1)
    assert other.action.kind is not ActionKind.FUSION
    assert other.strategies == ()


async def test_never_repeats_what_was_tried() -> None:
    """An action tried on this parent is not planned again, however it ended."""
    done = tuple(samples.tried(a, 1.2) for a in samples.OPTIONS[:-1])
    plans = await PLANNER.plan(samples.briefing(tried=done), 5)
    assert [p.action for p in plans] == [samples.OPTIONS[-1]]


async def test_neighbours_of_failures_come_later() -> None:
    """After one tiling crashed, tilings like it come after those unlike it."""
    options = samples.TILING
    failed = samples.tried(options[0], None, Verdict.CRASHED)
    fine = await PLANNER.plan(samples.briefing(options=options), 5)
    assert fine[0].action == options[1]
    plans = await PLANNER.plan(samples.briefing(options=options, tried=(failed,)), 5)
    assert plans[-1].action == options[1]


async def test_infrastructure_says_nothing() -> None:
    """A failure of the machine does not speak against an action's neighbours."""
    fine = await PLANNER.plan(samples.briefing(options=samples.TILING), 6)
    broken = samples.tried(samples.TILING[0], None, Verdict.INFRASTRUCTURE)
    after = await PLANNER.plan(samples.briefing(options=samples.TILING, tried=(broken,)), 6)
    assert [p.action for p in after] == [p.action for p in fine if p.action != samples.TILING[0]]


async def test_gives_up_where_nothing_is_left() -> None:
    """No options give no plans, and neither do options whose like has failed again and again."""
    assert await PLANNER.plan(samples.briefing(options=()), 3) == ()
    tight = samples.profile(Bottleneck.DRAM_BANDWIDTH)
    slower = tuple(samples.tried(a, 0.8) for a in samples.TILING[1:])
    assert await PLANNER.plan(samples.briefing(options=samples.TILING, profile=tight, tried=slower), 3) == ()


async def test_floor_ends_the_search() -> None:
    """On the roofline floor nothing is worth trying; near it no more is predicted than the floor leaves."""
    at_floor, near_it = (samples.profile_with("floor_share", share) for share in (0.96, 0.8))
    assert await PLANNER.plan(samples.briefing(profile=at_floor), 3) == ()
    (plan,) = await PLANNER.plan(samples.briefing(profile=near_it, recalled=(samples.recalled(samples.strategy()),)), 1)
    assert plan.predicted_gain == 1.25


async def test_free_coder_gets_invented_actions() -> None:
    """For a coder without options it plans kinds on the parent's kernels, and says that nothing proves them possible."""
    parent = samples.candidate()
    plans = await PLANNER.plan(samples.briefing(options=(), free=True, parent=parent.id, parent_source=parent.source), 2)
    assert {p.action.region for p in plans} == {"softmax_kernel"}
    assert "no coder has listed it" in plans[0].rationale


async def test_precision_needs_tensor_cores() -> None:
    """Lower precision is not planned for a device whose sheet shows no faster unit for it."""
    option = Action(kind=ActionKind.PRECISION, region="r0", parameters={"dtype": "tf32"})
    slow = samples.SHEET.model_copy(update={"tf32_tflops": None, "fp16_tflops": None})
    unit = samples.profile(Bottleneck.COMPUTE_UNIT)
    assert await PLANNER.plan(samples.briefing(options=(option,), profile=unit), 1) != ()
    assert await PLANNER.plan(samples.briefing(options=(option,), profile=unit, sheet=slow), 1) == ()


def test_table_is_complete() -> None:
    """Every bottleneck has a score from 0 to 10 for every kind."""
    assert {b: set(row) for b, row in SCORES.items()} == {bottleneck: set(ActionKind) for bottleneck in Bottleneck}
    assert all(0 <= score <= 10 for row in SCORES.values() for score in row.values())
