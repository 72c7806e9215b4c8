"""From one ask to plans: the surveyed step where the action is given, else what the planner chooses within the constraint."""

from __future__ import annotations

from collections.abc import Iterable

from agents.coder.tuning import structure_in
from agents.records.tune import is_tuning
from graphs.optimize.archive import surveyed_offer
from graphs.optimize.briefing import brief, kept_action, possible, situation_of, tried
from graphs.optimize.sweeping import SWEEP, sweeping_plan
from graphs.run.compiled import compiled_plan, is_compiled_ask
from graphs.run.context import Services
from graphs.run.starting import START, starting_plan
from graphs.run.steering import is_vetoed, vetoed_actions
from graphs.search.archive import Offer
from graphs.search.protocol import Ask
from tools.cost.choice import chosen_number
from tools.records import ActionKind, Plan


async def plans_for(services: Services, ask: Ask, round_: int, count: int, made: Iterable[Plan]) -> tuple[Plan, ...]:
    """Return at most `count` plans for `ask`, none of them tried before or among those `made` in this round."""
    if ask.tag == START:
        return (starting_plan(services),)
    if ask.tag == SWEEP:
        return (sweeping_plan(services, ask.parent),)
    if is_compiled_ask(ask):
        return (compiled_plan(services),)
    made, vetoed = tuple(made), is_vetoed(services.store, ask.parent)
    taken = vetoed_actions(services.store) | {
        plan.action.id for plan in made if plan.parent == ask.parent or _same_on(services, plan, ask.parent)
    }
    offer = surveyed_offer(services, ask)
    if offer is not None:
        plan = _plan(ask.parent, offer)
        known = services.store.get("plan", plan.id, Plan)
        fresh = not vetoed and plan.action.id not in taken and (known is None or tried(services, known) is None)
        return (await _as_memory_expects(services, plan),) if fresh else ()
    briefing = await brief(services, ask, round_, taken, sum(plan.action.kind is ActionKind.REWRITE for plan in made))
    if vetoed or not (briefing.options or briefing.free):
        return ()
    found = await services.team.planner.plan(briefing, count)
    return tuple([await _as_memory_expects(services, plan) for plan in found if plan.action.id not in taken])


def _same_on(services: Services, plan: Plan, parent: str) -> bool:
    """Whether a plan on another parent would come to the same on `parent`: a choice of the cost model, a tuning of the same structure."""
    if not is_tuning(plan.action):
        return bool(chosen_number(plan.action))
    both = [one for name in (plan.parent, parent) if (one := services.store.candidate(name))]
    return len(both) == 2 and len({structure_in(services.problem, one) for one in both}) == 1


async def _as_memory_expects(services: Services, plan: Plan) -> Plan:
    """Have a plan predict what memory knows of its very action in the parent's situation, and never more than the floor leaves."""
    expected = await services.memory.expect(situation_of(services, plan.parent), kept_action(services, plan.action), plan.id)
    gain = plan.predicted_gain if expected is None else expected
    gain = None if gain is None else possible(services, plan.parent, gain)
    if expected is None:
        return plan.model_copy(update={"predicted_gain": gain})
    rationale = f"{plan.rationale} Where it was tried in this situation, it ended at {gain:.2f} times this parent's speed."
    return plan.model_copy(update={"predicted_gain": gain, "rationale": rationale})


def _plan(parent: str, offer: Offer) -> Plan:
    return Plan(
        parent=parent,
        action=offer.action,
        rationale=offer.rationale,
        strategies=offer.strategies,
        predicted_gain=offer.predicted_gain,
        planner=offer.planner,
    )
