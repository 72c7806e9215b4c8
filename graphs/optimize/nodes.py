"""The nodes of the loop and its routers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from langgraph.runtime import Runtime
from langgraph.types import Send

from agents.coder.protocol import Refusal
from agents.models import BudgetReached
from agents.planner.protocol import Briefing, Tried
from agents.reviewer.protocol import Review, ReviewCase
from graphs.optimize.confirm import deliver
from graphs.optimize.context import Context, Services
from graphs.optimize.records import Recall
from graphs.optimize.state import STATE_VERSION, OptimizeState
from graphs.search.protocol import Ask, Told
from graphs.spans import traced
from graphs.waiting import pausing
from knowledge.records import Outcome, Situation
from knowledge.situation import describe_situation
from tools.evaluation.protocol import Baselines
from tools.records import ROOT, Evaluation, Plan, Profile


@traced
async def measure(state: OptimizeState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Time the reference, or estimate it, and say what limits it."""
    services = runtime.context.services
    store, problem = services.store, services.problem
    baselines = store.get("baselines", problem.id, Baselines)
    if baselines is None:
        with pausing():
            baselines = await services.pool.baselines(problem, services.sheet)
        store.put("baselines", problem.id, baselines)
    profile = await services.team.profiler.diagnose_reference(problem, baselines, services.sheet)
    store.put("profile", ROOT, profile)
    runtime.stream_writer({"event": "measured"})
    return {"version": STATE_VERSION, "run": services.run, "round": 1, "search": services.search().dump(), "champion": ROOT, "ended": ""}


@traced
async def recall(state: OptimizeState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Ask the search method for parents, and memory for what is known of their situations."""
    services = runtime.context.services
    asks = services.search(state["search"]).ask()
    for ask in asks:
        name = f"{state['round']}/{ask.parent}"
        if services.store.get("recall", name, Recall) is None:
            found = await services.memory.recall(_situation(services, ask.parent), services.settings.recall_limit)
            services.store.put("recall", name, Recall(recalled=found), subject=ask.parent)
        runtime.stream_writer({"event": "recalled", "recall": name})
    return {"asks": [ask.model_dump_json() for ask in asks]}


@traced
async def plan(state: OptimizeState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Let the planner turn each ask into plans of one action."""
    services = runtime.context.services
    left = services.evaluations_left()
    plans: list[str] = []
    barren: list[str] = []
    for text in state["asks"]:
        ask = Ask.model_validate_json(text)
        count = ask.plans if left is None else min(ask.plans, left - len(plans))
        if count <= 0:
            continue
        try:
            made = await services.team.planner.plan(await _briefing(services, ask, state["round"]), count)
        except BudgetReached as reached:
            return {"plans": plans, "barren": barren, "ended": reached.what}
        for one in made:
            services.store.put("plan", one.id, one, subject=ask.parent)
            runtime.stream_writer({"event": "planned", "plan": one.id})
        plans.extend(one.id for one in made)
        barren.extend([ask.parent] * (not made))
    return {"plans": list(dict.fromkeys(plans)), "barren": barren}


def fan_out(state: OptimizeState) -> Sequence[Send] | Literal["review"]:
    """One refinement a plan, in parallel."""
    return [Send("refine", {"run": state["run"], "plan": name, "attempt": 0}) for name in state["plans"]] or "review"


@traced
async def review(state: OptimizeState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Let the reviewer judge each result beside its parent, and tell the search method."""
    services = runtime.context.services
    told = [Told(parent=parent) for parent in state["barren"]]
    for name in state["plans"]:
        told.append(await _review_one(services, name, state["results"][name]))
        runtime.stream_writer({"event": "reviewed", "plan": name, "candidate": told[-1].candidate})
    search = services.search(state["search"])
    search.tell(told)
    best = services.evaluation(state["champion"])
    champion = max(told, key=lambda t: t.speedup, default=None)
    better = champion is not None and champion.speedup > max(1.0, (best.speedup or 0.0) if best else 0.0)
    update: dict[str, Any] = {"search": search.dump(), "champion": champion.candidate if champion and better else state["champion"]}
    return update


async def _review_one(services: Services, plan_id: str, candidate_id: str) -> Told:
    store = services.store
    made = store.get("plan", plan_id, Plan)
    assert made is not None
    evaluation = services.evaluation(candidate_id) if candidate_id else None
    if evaluation is None:
        return Told(parent=made.parent, plan=plan_id)
    case = ReviewCase(
        problem=services.problem,
        plan=made,
        candidate=services.candidate(candidate_id),
        evaluation=evaluation,
        profile=store.get("profile", candidate_id, Profile),
        parent_source="" if made.parent == ROOT else store.source(made.parent),
        parent_profile=store.get("profile", made.parent, Profile),
        parent_evaluation=services.evaluation(made.parent),
        baselines=services.baselines(),
    )
    judged = store.get("review", plan_id, Review)
    if judged is None:
        judged = await services.team.reviewer.review(case)
        store.put("review", plan_id, judged, subject=candidate_id)
    return Told(
        parent=made.parent,
        plan=plan_id,
        candidate=candidate_id,
        verdict=evaluation.verdict,
        speedup=evaluation.speedup or 0.0,
        accepted=judged.accepted,
    )


@traced
async def learn(state: OptimizeState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Give memory what each plan led to, failures too; then open the next round."""
    services = runtime.context.services
    for name in state["plans"]:
        outcome = _outcome(services, name, state["results"][name], state["round"])
        if outcome is not None:
            changed = await services.memory.learn(outcome)
            runtime.stream_writer({"event": "learnt", "plan": name, "strategies": list(changed)})
    ended = state["ended"] or services.exhausted() or ""
    if not ended and not services.search(state["search"]).ask():
        ended = "no untried step, or no progress"
    return {"round": state["round"] + 1, "ended": ended}


def route(state: OptimizeState) -> Literal["recall", "confirm"]:
    """Go on while budget and ideas last."""
    return "confirm" if state["ended"] else "recall"


@traced
async def confirm(state: OptimizeState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Judge the best candidates again, with new seeds in new processes, and deliver the first that holds."""
    services = runtime.context.services
    delivery = await deliver(services, list(dict.fromkeys(filter(None, state["results"].values()))), state["ended"])
    runtime.stream_writer({"event": "delivered", "candidate": delivery.candidate})
    return {"delivered": delivery.candidate}


async def _briefing(services: Services, ask: Ask, round_: int) -> Briefing:
    store, parent = services.store, services.store.candidate(ask.parent)
    profile = store.get("profile", ask.parent, Profile)
    recalled = store.get("recall", f"{round_}/{ask.parent}", Recall)
    assert profile is not None
    assert recalled is not None
    options = await services.team.coder.options(services.problem, parent, services.sheet)
    evaluation = services.evaluation(ask.parent)
    return Briefing(
        problem=services.problem,
        parent=ask.parent,
        parent_source=store.source(ask.parent),
        profile=profile,
        options=tuple(o for o in options if not ask.kinds or o.kind in ask.kinds),
        free=services.team.coder.free,
        tried=tuple(filter(None, (_tried(services, one) for one in store.all("plan", Plan, subject=ask.parent).values()))),
        recalled=recalled.recalled,
        sheet=services.sheet,
        speedup=(evaluation.speedup if evaluation else None) or 1.0,
    )


def _tried(services: Services, made: Plan) -> Tried | None:
    """What came of an earlier plan; None for one of a round that a kill cut short."""
    judged = services.store.get("review", made.id, Review)
    refused = services.store.get("refusal", made.id, Refusal)
    if judged is not None:
        return Tried(action=made.action, verdict=judged.verdict, gain=judged.gain.value if judged.gain else None, reason=judged.reason)
    return Tried(action=made.action, verdict=None, gain=None, reason=refused.reason) if refused else None


def _situation(services: Services, parent: str) -> Situation:
    profile = services.store.get("profile", parent, Profile)
    assert profile is not None
    return describe_situation(services.problem, profile, services.sheet)


def _outcome(services: Services, plan_id: str, candidate_id: str, round_: int) -> Outcome | None:
    store = services.store
    made = store.get("plan", plan_id, Plan)
    judged = store.get("review", plan_id, Review)
    evaluation: Evaluation | None = services.evaluation(candidate_id) if candidate_id else None
    if made is None or judged is None or evaluation is None:
        return None
    recalled = store.get("recall", f"{round_}/{made.parent}", Recall)
    return Outcome(
        run=services.run,
        plan=plan_id,
        situation=_situation(services, made.parent),
        action=made.action,
        candidate=candidate_id,
        verdict=evaluation.verdict,
        gain=judged.gain.value if judged.gain else None,
        predicted_gain=made.predicted_gain,
        tier=evaluation.tier.value if evaluation.tier else "",
        device=evaluation.timing.device if evaluation.timing else services.sheet.name,
        accepted=judged.accepted,
        lesson=judged.lesson,
        cited=made.strategies,
        recalled=tuple(r.strategy.id for r in recalled.recalled) if recalled else (),
        versions=evaluation.versions,
    )
