"""Ratings of every possible step, and what a search method's constraint and examples do to a planner's choice."""

from __future__ import annotations

from agents.planner.builtin import BuiltinPlanner
from agents.planner.protocol import Briefing
from agents.planner.rating import rate
from agents.records.inspiration import Inspiration
from agents.samples import case as samples
from tools.cost.choice import choice_action, chosen_number
from tools.records import ActionKind, Plan


class LastOptionPlanner:
    """Stands for a model that prefers the coder's last option."""

    name = "last-option"

    async def plan(self, briefing: Briefing, count: int) -> tuple[Plan, ...]:
        """Plan the last option."""
        return (Plan(parent=briefing.parent, action=briefing.options[-1], rationale="I like it.", predicted_gain=1.7, planner=self.name),)


async def test_every_option_is_rated_best_first() -> None:
    """The built-in rating has each option once, also those that are not worth planning, with scores from 0 to 10 that fall."""
    briefing = samples.briefing()
    ratings = await rate(BuiltinPlanner(), briefing)
    assert {one.action.id for one in ratings} == {option.id for option in briefing.options}
    scores = [one.score for one in ratings]
    assert scores == sorted(scores, reverse=True)
    assert 0 <= scores[-1] <= scores[0] <= 10


async def test_what_a_model_plans_comes_first() -> None:
    """Another planner's plans lead the rating with its reasons; the rest follows by the built-in scores."""
    briefing = samples.briefing()
    ratings = await rate(LastOptionPlanner(), briefing)
    assert ratings[0].action == briefing.options[-1]
    assert (ratings[0].planner, ratings[0].predicted_gain) == ("last-option", 1.7)
    assert len(ratings) == len(briefing.options)
    assert all(one.planner == "builtin" and one.score <= ratings[0].score for one in ratings[1:])


async def test_a_model_is_not_asked_where_no_rating_is_wanted() -> None:
    """With `ask` off the built-in scores stand alone."""
    ratings = await rate(LastOptionPlanner(), samples.briefing(), ask=False)
    assert {one.planner for one in ratings} == {"builtin"}


async def test_the_constraint_on_the_kind_is_kept() -> None:
    """Asked for one kind only, the built-in planner plans no other, and nothing where that kind has no step."""
    planner = BuiltinPlanner()
    plans = await planner.plan(samples.briefing(kinds=(ActionKind.TILING,)), 9)
    assert {plan.action.kind for plan in plans} == {ActionKind.TILING}
    assert await planner.plan(samples.briefing(kinds=(ActionKind.LAYOUT,)), 9) == ()


async def test_the_steps_of_a_second_parent_are_preferred() -> None:
    """A step that led to a mate outranks its equals, and the plan names the mate."""
    step = samples.TILING[0]
    mate = Inspiration(candidate="mate01", speedup=3.0, steps=(step,), mate=True)
    (plain,) = await BuiltinPlanner().plan(samples.briefing(kinds=(ActionKind.TILING,)), 1)
    (plan,) = await BuiltinPlanner().plan(samples.briefing(kinds=(ActionKind.TILING,), inspirations=(mate,)), 1)
    assert plain.action != step
    assert plan.action == step
    assert "mate01" in plan.rationale


async def test_steps_beyond_the_scale_keep_their_order() -> None:
    """Choices of the cost model, which count for more than the scale has, are rated the first one first, and all else as without them."""
    choices = tuple(choice_action(number) for number in (3, 1, 2))
    with_them = await rate(BuiltinPlanner(), samples.briefing(options=(*choices, *samples.OPTIONS)))
    assert [chosen_number(one.action) for one in with_them[:3]] == [1, 2, 3]
    assert 10 == with_them[0].score > with_them[1].score > with_them[2].score > 9
    alone = {one.action.id: one.score for one in await rate(BuiltinPlanner(), samples.briefing(options=samples.OPTIONS))}
    assert {one.action.id: one.score for one in with_them[3:] if one.score <= 9} == {name: s for name, s in alone.items() if s <= 9} != {}
