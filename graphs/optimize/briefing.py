"""What a planner is told of one parent, put together from the run's store."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from agents.coder import modelled
from agents.coder.difference import changed_action
from agents.coder.protocol import Refusal
from agents.coder.tuning import structure_in, tuning_action
from agents.planner.builtin import BuiltinPlanner
from agents.planner.protocol import Briefing, Tried
from agents.planner.room import most_gain
from agents.reviewer.protocol import Review
from graphs.run.context import Services
from graphs.run.inspirations import inspirations
from graphs.run.records import Recall, Tuning
from graphs.run.standing import standing_of
from graphs.search.protocol import Ask
from knowledge.records import Recalled, Situation
from knowledge.records.describe import describe_situation
from tools.cost.choice import chosen_number
from tools.records import Action, Plan, Profile


async def recalled_for(services: Services, parent: str, round_: int) -> str:
    """Ask memory about a parent's situation, once a round; return the name under which the store has it."""
    name = f"{round_}/{parent}"
    if services.store.get("recall", name, Recall) is None:
        found = await services.memory.recall(situation_of(services, parent), services.settings.recall_limit, f"{services.run}/{name}")
        own = lineage(services, parent)
        news = tuple(_bounded(services, parent, one) for one in found if not _is_echo(services, one, own))
        services.store.put("recall", name, Recall(recalled=news), subject=parent)
    return name


def _is_echo(services: Services, recalled: Recalled, own: set[str]) -> bool:
    """Whether all that a strategy rests on is how this very parent came about."""
    trials = recalled.strategy.trials
    return bool(trials) and all(one.run == services.run and one.candidate in own for one in trials)


def _bounded(services: Services, parent: str, recalled: Recalled) -> Recalled:
    """Foretell no more than the floor leaves here, and say so."""
    if recalled.foretold is None or (most := possible(services, parent, recalled.foretold)) == recalled.foretold:
        return recalled
    return recalled.model_copy(update={"foretold": most, "why": f"{recalled.why}, of which the floor leaves {most:.2f}x here"})


def possible(services: Services, parent: str, gain: float) -> float:
    """Cap a gain at what the roofline floor leaves a parent, where that is known."""
    profile = services.store.get("profile", parent, Profile)
    most = most_gain(profile) if profile else None
    return gain if most is None else min(gain, most)


def lineage(services: Services, name: str) -> set[str]:
    """Ids of a candidate and of those it came from."""
    found: set[str] = set()
    while name not in found and (candidate := services.store.candidate(name)) is not None:
        found.add(name)
        name = candidate.parent
    return found


async def brief(services: Services, ask: Ask, round_: int, taken: Collection[str] = (), begun: int = 0) -> Briefing:
    """Put together what a planner sees for one ask; `taken` are ids of actions that this round has planned already, `begun` its designs."""
    store, parent = services.store, services.store.candidate(ask.parent)
    profile = store.get("profile", ask.parent, Profile)
    recalled = store.get("recall", f"{round_}/{ask.parent}", Recall)
    assert profile is not None
    assert recalled is not None
    options = await services.team.coder.options(services.problem, parent, services.sheet)
    tuning = tuning_action(parent, services.settings.tune, structures_tuned(services), services.problem)
    options = (*options, tuning) if tuning else options
    taken = {*taken, *choices_tried(services)}
    evaluation = services.evaluation(ask.parent)
    fitting = [o for o in options if o.id not in taken and (ask.action is None or o.id == ask.action.id)]
    briefing = Briefing(
        problem=services.problem,
        parent=ask.parent,
        parent_source=store.source(ask.parent),
        profile=profile,
        options=tuple(fitting),
        free=services.team.coder.free and ask.action is None,
        tried=tuple(filter(None, (tried(services, one) for one in store.all("plan", Plan, subject=ask.parent).values()))),
        recalled=recalled.recalled,
        sheet=services.sheet,
        speedup=(evaluation.speedup if evaluation else None) or 1.0,
        doubt=evaluation.doubt if evaluation else "",
        kinds=ask.kinds,
        regions=ask.regions,
        against=services.settings.against,
        inspirations=inspirations(services, ask),
        standing=standing_of(services),
        begun=begun,
    )
    allowed = tuple(o for o in fitting if briefing.allows(o))
    if not allowed:
        return briefing.model_copy(update={"options": ()})
    expected = await asyncio.to_thread(modelled.expectations, services.problem, parent, allowed, services.sheet)
    is_listed = isinstance(services.team.planner, BuiltinPlanner)
    made_of = {} if is_listed else await asyncio.to_thread(modelled.regions_in_words, services.problem, parent)
    return briefing.model_copy(update={"options": allowed, "expected": expected, "made_of": made_of})


def choices_tried(services: Services) -> set[str]:
    """Ids of the cost model's choices that were tried in this run: each leads to one schedule, from whatever parent."""
    plans = services.store.all("plan", Plan).values()
    return {plan.action.id for plan in plans if chosen_number(plan.action) and tried(services, plan) is not None}


def structures_tuned(services: Services) -> set[str]:
    """Signatures of the schedules and texts that were tuned in this run: a tuning leaves its structure, so a second one would repeat it."""
    done = services.store.all("tuning", Tuning).values()
    # numbers that a written source left to the compiler stand in it afterwards
    left = {structure_in(services.problem, services.candidate(one.best)) for one in done if one.best}
    return {one.structure for one in done} | left


def tried(services: Services, made: Plan) -> Tried | None:
    """What came of an earlier plan; None for one of a round that a kill cut short."""
    judged = services.store.get("review", made.id, Review)
    refused = services.store.get("refusal", made.id, Refusal)
    if judged is not None:
        return Tried(action=made.action, verdict=judged.verdict, gain=judged.gain.value if judged.gain else None, reason=judged.reason)
    return Tried(action=made.action, verdict=None, gain=None, reason=refused.reason) if refused else None


def situation_of(services: Services, parent: str) -> Situation:
    """Describe where a parent stands: the query of a recall."""
    profile = services.store.get("profile", parent, Profile)
    assert profile is not None
    situation = describe_situation(services.problem, profile, services.sheet)
    return situation.model_copy(update={"backend": services.settings.team.frame.language})


def kept_action(services: Services, action: Action) -> Action:
    """Word an action as memory keeps it."""
    return modelled.kept_action(action, services.problem, services.sheet)


def changed_by(services: Services, plan: Plan, candidate: str) -> Action | None:
    """Word what a plan's candidate really changed of its parent, as memory keeps it; None where that has no name."""
    changed = changed_action(plan.action, services.store.candidate(plan.parent), services.candidate(candidate))
    return kept_action(services, changed) if changed else None
