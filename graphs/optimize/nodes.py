"""The nodes of the loop and its routers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Literal

from langgraph.runtime import Runtime
from langgraph.types import Send

from agents.models import BudgetReached
from agents.models.deadline import in_time
from agents.reviewer.protocol import Review, ReviewCase
from graphs.optimize.archive import search_of
from graphs.optimize.briefing import changed_by, recalled_for, situation_of
from graphs.optimize.checking import checked_review
from graphs.optimize.confirm import deliver
from graphs.optimize.joining import join_best
from graphs.optimize.model_scores import score_models
from graphs.optimize.planning import plans_for
from graphs.optimize.state import STATE_VERSION, OptimizeState
from graphs.optimize.steered import steered
from graphs.optimize.sweeping import SWEEPER, sweeping_ask
from graphs.optimize.teaching import close_lessons, error_cost, excerpt_of, region_kind
from graphs.optimize.wishes import grant
from graphs.run.compiled import COMPILED, compiled_ask
from graphs.run.context import Context, Services
from graphs.run.fork import FORK, fork_of
from graphs.run.records import LEARNT, Learnt, Recall
from graphs.run.spans import traced
from graphs.run.standing import keep_attempt
from graphs.run.starting import USER, check_started, starting_ask
from graphs.run.steering import END, closings, is_vetoed, pinned_asks, take
from graphs.run.waiting import pausing
from graphs.run.works import note_steps
from graphs.search.protocol import Ask, Told
from knowledge.records import Outcome
from tools.errors import UserError
from tools.records import ATTEMPT, ROOT, Baselines, Evaluation, Plan, Profile, Verdict

IDLE = 12
"""Rounds of refusals and of kernels that were known already after which a run ends: no budget of evaluations ever would."""


@traced
async def measure(state: OptimizeState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Time the reference, or estimate it, and say what limits it."""
    services = runtime.context.services
    store, problem = services.store, services.problem
    baselines = store.get("baselines", problem.id, Baselines)
    if baselines is None:
        began = time.time()
        with pausing():
            baselines = await _timed_reference(services)
        note_steps(store, began, baselines.steps)
        store.put("baselines", problem.id, baselines)
    profile = await services.team.profiler.diagnose_reference(problem, baselines, services.sheet)
    store.put("profile", ROOT, profile)
    runtime.stream_writer({"event": "measured"})
    return {"version": STATE_VERSION, "run": services.run, "round": 1, "search": search_of(services).dump(), "champion": ROOT, "ended": ""}


@traced
async def recall(state: OptimizeState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Survey what the search method wants to choose among, ask it what to do next, and memory about the parents' situations."""
    services = runtime.context.services
    search = search_of(services, state["search"], state["round"])
    asked = await steered(services, state["round"], runtime.stream_writer)
    search.tell(closings(asked))
    one = starting_ask(services, state["round"]) or sweeping_ask(services, state["champion"])
    if first := pinned_asks(asked, services.settings.search_settings.batch) or ((one,) if one else ()):
        for ask in first:
            runtime.stream_writer({"event": "recalled", "recall": await recalled_for(services, ask.parent, state["round"])})
        return {"asks": [ask.model_dump_json() for ask in first], "search": search.dump(), "ended": ""}
    try:
        while wanted := search.scout():
            for wish in wanted:
                for said in await grant(services, wish, state["round"]):
                    runtime.stream_writer({"event": "considered", "said": said})
    except BudgetReached as reached:
        return {"asks": [], "ended": reached.what}
    asks = (*search.ask(), *compiled_ask(services, state["round"]))
    for ask in asks:
        runtime.stream_writer({"event": "recalled", "recall": await recalled_for(services, ask.parent, state["round"])})
    return {"asks": [ask.model_dump_json() for ask in asks], "search": search.dump(), "ended": "" if asks else search.reason()}


async def _timed_reference(services: Services) -> Baselines:
    try:
        return await in_time(
            lambda: services.pool.baselines(services.problem, services.sheet), services.time_left(), "Timing the reference"
        )
    except BudgetReached as reached:
        raise UserError(reached.what, "Start the run anew with more --minutes.") from None


def after_recall(state: OptimizeState) -> Literal["plan", "confirm"]:
    """End where the search method has nothing more to ask for."""
    return "plan" if state["asks"] else "confirm"


@traced
async def plan(state: OptimizeState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Let the planner turn each ask into plans of one action."""
    services = runtime.context.services
    left = services.evaluations_left()
    made: dict[str, Plan] = {}
    tags: dict[str, str] = {}
    barren: list[str] = []
    ended = ""
    for text in state["asks"]:
        ask = Ask.model_validate_json(text)
        count = ask.plans if left is None else min(ask.plans, left - len(made))
        if count <= 0:
            continue
        try:
            found = await plans_for(services, ask, state["round"], count, made.values())
        except BudgetReached as reached:
            ended = reached.what
            break
        for one in found:
            services.store.put("plan", one.id, one, subject=ask.parent)
            services.store.put("asked", one.id, ask, subject=one.id)
            runtime.stream_writer({"event": "planned", "plan": one.id})
            made[one.id], tags[one.id] = one, "" if one.planner in (USER, FORK, COMPILED, SWEEPER) else ask.tag
        barren.extend([text] * (not found))
    return {"plans": list(made), "tags": tags, "barren": barren, **({"ended": ended} if ended else {})}


def fan_out(state: OptimizeState) -> Sequence[Send] | Literal["review"]:
    """One refinement a plan, in parallel."""
    return [Send("refine", {"run": state["run"], "plan": name, "attempt": 0}) for name in state["plans"]] or "review"


@traced
async def review(state: OptimizeState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Let the reviewer judge each result beside its parent, and tell the search method."""
    services = runtime.context.services
    unmet = [Ask.model_validate_json(text) for text in state["barren"]]
    told = [Told(parent=ask.parent, constrained=ask.constrained, tag=ask.tag) for ask in unmet]
    for name in state["plans"]:
        told.append(await _review_one(services, name, state["results"][name], state["tags"][name]))
        runtime.stream_writer({"event": "reviewed", "plan": name, "candidate": told[-1].candidate})
    if state["round"] == 1 and fork_of(services.store):
        # a fork goes on from its candidate, and never from the reference
        told.append(Told(parent=ROOT))
    score_models(services)
    search = search_of(services, state["search"], state["round"])
    search.tell(told)
    best = None if is_vetoed(services.store, state["champion"]) else services.evaluation(state["champion"])
    champion = max(told, key=lambda t: t.speedup, default=None)
    better = champion is not None and champion.speedup > max(1.0, (best.speedup or 0.0) if best else 0.0)
    update: dict[str, Any] = {"search": search.dump(), "champion": champion.candidate if champion and better else state["champion"]}
    return update


async def _review_one(services: Services, plan_id: str, candidate_id: str, tag: str) -> Told:
    store = services.store
    made = store.get("plan", plan_id, Plan)
    assert made is not None
    evaluation = services.evaluation(candidate_id) if candidate_id else None
    told = Told(
        parent=made.parent, plan=plan_id, kind=made.action.kind, region=made.action.region, predicted_gain=made.predicted_gain, tag=tag
    )
    if evaluation is None:
        keep_attempt(services, made, "")
        return told
    check_started(services, made, candidate_id)
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
        kept=changed_by(services, made, candidate_id),
    )
    judged = store.get("review", plan_id, Review)
    if judged is None:
        judged = await checked_review(services, case.candidate, await services.team.reviewer.review(case))
        store.put("review", plan_id, judged, subject=candidate_id)
    keep_attempt(services, made, candidate_id)
    passed = judged.verdict is Verdict.PASS
    ended = {"verdict": judged.verdict, "speedup": (evaluation.speedup or 0.0) if passed else 0.0, "accepted": judged.accepted}
    return told.model_copy(update={"candidate": candidate_id, **ended})


@traced
async def learn(state: OptimizeState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Give memory what each plan led to, failures too; then open the next round."""
    services = runtime.context.services
    for name in state["plans"]:
        outcome = _outcome(services, name, state["results"][name], state["round"])
        if outcome is not None:
            changed = await services.memory.learn(outcome)
            # an outcome that is learnt again, after a kill, changes nothing
            if changed:
                services.store.put(LEARNT, name, Learnt(strategies=changed), subject=name)
            runtime.stream_writer({"event": "learnt", "plan": name, "strategies": list(changed)})
    for said in services.memory.news():
        runtime.stream_writer({"event": "lessons", "said": said})
    evaluated = services.store.spent().evaluations
    idle = 0 if evaluated > state.get("evaluated", 0) else state.get("idle", 0) + bool(state["plans"])
    nothing_new = f"no plan led to a new candidate in {IDLE} rounds" if idle >= IDLE else ""
    ended = state["ended"] or services.exhausted() or nothing_new
    return {"round": state["round"] + 1, "ended": ended, "evaluated": evaluated, "idle": idle}


def route(state: OptimizeState) -> Literal["recall", "confirm"]:
    """Go on while budget and ideas last."""
    return "confirm" if state["ended"] else "recall"


@traced
async def confirm(state: OptimizeState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Judge the best candidates again, with new seeds in new processes, and deliver the first that holds; memory may reflect."""
    services = runtime.context.services
    runtime.stream_writer({"event": "confirming"})
    take(services.store, END)
    results = (*state["results"].values(), await join_best(services))
    delivery = await deliver(services, list(dict.fromkeys(filter(None, results))), state["ended"])
    for said in await close_lessons(services):
        runtime.stream_writer({"event": "lessons", "said": said})
    runtime.stream_writer({"event": "delivered", "candidate": delivery.candidate})
    return {"delivered": delivery.candidate}


def _outcome(services: Services, plan_id: str, candidate_id: str, round_: int) -> Outcome | None:
    store = services.store
    made = store.get("plan", plan_id, Plan)
    judged = store.get("review", plan_id, Review)
    evaluation: Evaluation | None = services.evaluation(candidate_id) if candidate_id else None
    if made is None or judged is None or evaluation is None or made.planner in (COMPILED, FORK):
        # of what torch.compile wrote there is nothing to learn: it is tried without being told; of a fork's first, its own run has learnt
        return None
    changed = changed_by(services, made, candidate_id)
    if changed is None:
        # nobody can say what was tried, so nothing is learnt of it
        return None
    recalled = store.get("recall", f"{round_}/{made.parent}", Recall)
    return Outcome(
        run=services.run,
        plan=plan_id,
        situation=situation_of(services, made.parent),
        action=changed,
        candidate=candidate_id,
        verdict=evaluation.verdict,
        gain=judged.gain.value if judged.gain else None,
        predicted_gain=made.predicted_gain,
        tier=evaluation.tier.value if evaluation.tier else "",
        device=evaluation.timing.device if evaluation.timing else services.sheet.name,
        accepted=judged.accepted,
        lesson=judged.lesson,
        word=judged.word,
        cited=made.strategies,
        # nobody chose among what was recalled where the coder designs by itself
        recalled=tuple(r.strategy.id for r in recalled.recalled) if recalled and ATTEMPT not in made.action.parameters else (),
        versions=evaluation.versions,
        region=region_kind(services.candidate(candidate_id), made.action.region),
        error_cost=error_cost(evaluation),
        gpu_s=evaluation.gpu_seconds,
        excerpt=excerpt_of(services.candidate(candidate_id), made.action.region, judged),
        rationale=made.rationale,
    )
