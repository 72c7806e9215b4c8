"""The nodes of a refinement and its routers."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from langgraph.runtime import Runtime

from agents.coder.protocol import CodingTask, Draft, Refusal
from agents.models import BudgetReached
from agents.models.deadline import in_time
from agents.records.tune import is_tuning
from graphs.refine.state import RefineState
from graphs.refine.tuning import carry_out, refusal_of
from graphs.run.assembly import open_for
from graphs.run.compiled import COMPILED, compiled_draft
from graphs.run.context import Context, Services
from graphs.run.counted import counters_of_best
from graphs.run.fork import FORK, fork_of
from graphs.run.inspirations import inspirations
from graphs.run.judge import judge
from graphs.run.records import Recall
from graphs.run.spans import traced
from graphs.run.standing import standing_of
from graphs.run.starting import USER, starting_draft
from graphs.search.protocol import Ask
from knowledge.records import Recalled
from tools.records import Candidate, Evaluation, EvaluationRequest, Plan, Profile, Verdict


def first(state: RefineState, runtime: Runtime[Context]) -> Literal["write", "tune"]:
    """Tuning has its own node; every other action is the coder's."""
    open_for(runtime.context, str(state.get("run") or ""))
    plan = runtime.context.services.store.get("plan", state["plan"], Plan)
    return "tune" if plan is not None and is_tuning(plan.action) else "write"


@traced
async def tune(state: RefineState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Try settings of the parent's numbers; the fastest right one is the plan's candidate."""
    services = runtime.context.services
    plan = services.store.get("plan", state["plan"], Plan)
    assert plan is not None
    said = partial(_say_tried, runtime, plan)
    done = await carry_out(services, plan, said)
    if not done.best:
        refusal = refusal_of(done)
        services.store.put("refusal", plan.id, refusal, subject=plan.id)
        runtime.stream_writer({"event": "refused", "plan": plan.id, "reason": refusal.reason})
        return {"candidate": "", "attempt": 0}
    key = services.request(services.candidate(done.best)).key
    return {"candidate": done.best, "attempt": 0, "evaluation": key, "verdict": Verdict.PASS.value}


def _say_tried(runtime: Runtime[Context], plan: Plan, request: EvaluationRequest) -> None:
    runtime.stream_writer({"event": "evaluated", "plan": plan.id, "candidate": request.candidate, "key": request.key})


def after_tune(state: RefineState) -> Literal["profile", "roll_back"]:
    """Profile the best trial, where one was right."""
    return "profile" if state["candidate"] else "roll_back"


@traced
async def write(state: RefineState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Let the coder apply the plan's one action to its parent."""
    services = runtime.context.services
    task = _task(services, state["plan"])
    try:
        draft = await in_time(lambda: _draft(services, task), services.time_left(), "Writing")
    except BudgetReached as reached:
        draft = Refusal(reason=reached.what)
    return _keep(runtime, task, draft, repairs=0)


async def _draft(services: Services, task: CodingTask) -> Draft | Refusal:
    """The kernel to start from, or torch.compile's, where that is what is planned; else what the coder writes."""
    if task.plan.planner in (USER, FORK):
        return starting_draft(services)
    return await compiled_draft(services) if task.plan.planner == COMPILED else await services.team.coder.write(task)


def after_write(state: RefineState) -> Literal["evaluate", "roll_back"]:
    """A refusal has nothing to evaluate."""
    return "evaluate" if state["candidate"] else "roll_back"


@traced
async def evaluate(state: RefineState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Judge the candidate, unless this very job was judged before."""
    services = runtime.context.services
    candidate = services.candidate(state["candidate"])
    request = services.request(candidate)
    try:
        evaluation = await judge(services, request)
    except BudgetReached:
        # nothing is known of the candidate; the search ends with this round
        return {"evaluation": "", "verdict": ""}
    runtime.stream_writer({"event": "evaluated", "plan": state["plan"], "candidate": candidate.id, "key": request.key})
    return {"evaluation": request.key, "verdict": evaluation.verdict.value}


def after_evaluate(state: RefineState, runtime: Runtime[Context]) -> Literal["profile", "repair", "roll_back"]:
    """Profile what passed; repair what failed while attempts and budget last."""
    services = runtime.context.services
    if state["verdict"] == Verdict.PASS:
        return "profile"
    plan = services.store.get("plan", state["plan"], Plan)
    written_by_coder = plan is None or plan.planner != COMPILED
    if state["verdict"] in ("", Verdict.INFRASTRUCTURE) or state["attempt"] >= services.settings.repairs or not written_by_coder:
        return "roll_back"
    return "roll_back" if services.exhausted() else "repair"


@traced
async def repair(state: RefineState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Show the coder how its draft ended and let it mend it."""
    services = runtime.context.services
    task = _task(services, state["plan"])
    failed = services.candidate(state["candidate"])
    evaluation = services.store.get("evaluation", state["evaluation"], Evaluation)
    assert evaluation is not None
    draft = Draft(source=failed.source, schedule=failed.schedule, notes=failed.notes, idea=failed.idea)
    attempt = state["attempt"] + 1
    try:
        mended = await services.team.coder.repair(task, draft, evaluation, attempt)
    except BudgetReached as reached:
        mended = Refusal(reason=reached.what)
    if isinstance(mended, Draft) and mended.source == failed.source:
        mended = Refusal(reason=f"The repair left the source as it is, which ended as {evaluation.verdict}: it was not judged again.")
    if isinstance(mended, Refusal):
        services.store.put("refusal", f"{state['plan']}/{attempt}", mended, subject=state["plan"])
        return {"verdict": "", "attempt": attempt}
    return {"verdict": "repaired", **_keep(runtime, task, mended, repairs=attempt)}


def after_repair(state: RefineState) -> Literal["evaluate", "roll_back"]:
    """Evaluate a repaired draft; where the coder gave up, roll back."""
    return "evaluate" if state["verdict"] == "repaired" else "roll_back"


@traced
async def profile(state: RefineState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Diagnose where the passing candidate's time goes."""
    services = runtime.context.services
    evaluation = services.store.get("evaluation", state["evaluation"], Evaluation)
    assert evaluation is not None
    if services.store.get("profile", state["candidate"], Profile) is None:
        candidate = services.candidate(state["candidate"])
        # built-in agents change schedules: on a text only a model can plan
        is_planned_on = candidate.schedule is not None or bool(services.settings.team.models())
        counters = await counters_of_best(services, services.request(candidate), evaluation, is_planned_on=is_planned_on)
        diagnosis = await services.team.profiler.diagnose(services.problem, evaluation, services.baselines(), services.sheet, counters)
        services.store.put("profile", state["candidate"], diagnosis)
    return {"results": {state["plan"]: state["candidate"]}}


@traced
async def roll_back(state: RefineState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Leave the parent as it is; the failed candidate stays in the store as negative knowledge."""
    return {"results": {state["plan"]: state["candidate"]}}


def _task(services: Services, plan_id: str) -> CodingTask:
    plan = services.store.get("plan", plan_id, Plan)
    assert plan is not None
    profile_ = services.store.get("profile", plan.parent, Profile)
    assert profile_ is not None
    ask = services.store.get("asked", plan_id, Ask)
    evaluation = services.evaluation(plan.parent)
    return CodingTask(
        problem=services.problem,
        parent=services.store.candidate(plan.parent),
        plan=plan,
        profile=profile_,
        sheet=services.sheet,
        programs=inspirations(services, ask) if ask else (),
        doubt=evaluation.doubt if evaluation else "",
        standing=standing_of(services),
        recalled=_recalled(services, plan.parent),
        evaluation=evaluation,
        versions=services.baselines().versions,
        swept=services.settings.tune > 0,
    )


def _recalled(services: Services, parent: str) -> tuple[Recalled, ...]:
    """What memory brought up last for a parent."""
    found = list(services.store.all("recall", Recall, subject=parent).values())
    return found[-1].recalled if found else ()


def _keep(runtime: Runtime[Context], task: CodingTask, draft: Draft | Refusal, repairs: int) -> dict[str, Any]:
    """Store what the coder gave and say so."""
    services = runtime.context.services
    if isinstance(draft, Refusal):
        services.store.put("refusal", task.plan.id, draft, subject=task.plan.id)
        runtime.stream_writer({"event": "refused", "plan": task.plan.id, "reason": draft.reason})
        return {"candidate": "", "attempt": repairs}
    candidate = Candidate(
        problem=services.problem.id,
        parent=task.plan.parent,
        action=task.plan.action,
        source=draft.source,
        schedule=draft.schedule,
        coder=_writer(services, task.plan, repairs),
        repairs=repairs,
        notes=draft.notes,
        idea=draft.idea,
    )
    services.store.put_candidate(candidate)
    runtime.stream_writer({"event": "written", "candidate": candidate.id, "plan": task.plan.id, "repairs": repairs})
    return {"candidate": candidate.id, "attempt": repairs}


def _writer(services: Services, plan: Plan, repairs: int) -> str:
    """Who wrote a candidate: the user, torch.compile or a fork's own writer, where the coder had no hand in it."""
    if repairs or plan.planner not in (USER, COMPILED, FORK):
        return services.team.coder.name
    fork = fork_of(services.store)
    return fork.coder if fork and plan.planner == FORK else plan.planner
