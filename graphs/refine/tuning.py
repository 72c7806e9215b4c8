"""Carrying out the action `tune`: trials in waves, each judged like any other candidate and counted in the budget."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from agents.coder.protocol import Refusal
from agents.coder.tuning import TuningSpace, structure_of
from agents.models import BudgetReached
from agents.records.tune import TRIALS
from graphs.run.context import Services
from graphs.run.judge import judge
from graphs.run.records import Trial, Tuning
from tools.records import Candidate, Evaluation, Plan, Tier
from tools.tuning import Search, Tuned, TuningCache

WAVE = 8
"""Trials in flight at once: builds and checks of eight share one start of the evaluator's processes."""


async def tune_schedule(services: Services, plan: Plan) -> Tuning:
    """Carry out a plan's tuning, or finish it: what was judged before a kill is not judged again, and the same points are asked for."""
    async with services.judging.setdefault("tuning", asyncio.Lock()):
        parent = services.candidate(plan.parent)
        space = await asyncio.to_thread(TuningSpace, services.problem, parent, plan.action, services.sheet)
        begun = services.store.get("tuning", plan.id, Tuning) or _begin(services, plan, space)
        search = Search(space.tunable.points, begun.known, services.settings.search_settings.seed)
        before = services.evaluation(plan.parent)
        search.tell(space.tunable.own, before.time_us if before else None)
        trials: list[Trial] = []
        while len(trials) < begun.allowed:
            names = search.ask(min(WAVE, begun.allowed - len(trials)))
            if not names or services.time_left() == 0:
                break
            wave = await _all_tried(services, plan, space, names)
            for trial in wave:
                search.tell(trial.point, trial.time_us)
            trials += wave
            begun = begun.model_copy(update={"trials": tuple(trials), "best": _best(trials)})
            services.store.put("tuning", plan.id, begun, subject=plan.parent)
        _keep(services, space, begun)
        return begun


def _begin(services: Services, plan: Plan, space: TuningSpace) -> Tuning:
    left = services.evaluations_left()
    wanted = int(plan.action.parameters[TRIALS])
    found: tuple[Tuned, ...] = ()
    if services.settings.tuned and services.settings.memory:
        cache = TuningCache(Path(services.settings.tuned))
        found = cache.recall(services.problem.id, services.sheet.name, _versions(services, plan), space.work, space.sizes)
    begun = Tuning(
        plan=plan.id,
        structure=structure_of(space.tunable.schedule.model_dump_json()),
        allowed=wanted if left is None else max(1, min(wanted, left // 2)),
        known=tuple(name for name in space.known(found) if name != space.tunable.own),
        points=len(space.tunable.points),
    )
    services.store.put("tuning", plan.id, begun, subject=plan.parent)
    return begun


async def _all_tried(services: Services, plan: Plan, space: TuningSpace, names: Sequence[str]) -> list[Trial]:
    """Try points side by side; where the machine fails at one, the others end first, so that nothing that was evaluated is lost."""
    ended = await asyncio.gather(*(_try(services, plan, space, name) for name in names), return_exceptions=True)
    wave = [one for one in ended if isinstance(one, Trial)]
    for one in ended:
        if isinstance(one, BaseException):
            raise one
    return wave


async def _try(services: Services, plan: Plan, space: TuningSpace, point: str) -> Trial:
    predicted = next(one.predicted_us for one in space.tunable.points if one.name == point)
    draft = await asyncio.to_thread(space.draft, point)
    if draft is None:
        return Trial(candidate="", point=point, predicted_us=predicted)
    candidate = Candidate(
        problem=services.problem.id, parent=plan.parent, action=plan.action, source=draft.source, schedule=draft.schedule,
        coder="builtin", notes=draft.notes,
    )  # fmt: skip
    services.store.put_candidate(candidate)
    try:
        evaluation = await judge(services, services.request(candidate))
    except BudgetReached:
        return Trial(candidate="", point=point, predicted_us=predicted)
    return Trial(
        candidate=candidate.id, point=point, predicted_us=predicted, verdict=evaluation.verdict, time_us=evaluation.time_us
    )  # fmt: skip


def _best(trials: list[Trial]) -> str:
    timed = [trial for trial in trials if trial.time_us is not None]
    return min(timed, key=lambda trial: trial.time_us or 0.0).candidate if timed else ""


def _keep(services: Services, space: TuningSpace, done: Tuning) -> None:
    """Let later runs begin where this one ended."""
    best = next((trial for trial in done.trials if trial.candidate and trial.candidate == done.best), None)
    evaluation = services.evaluation(done.best) if best else None
    if best is None or evaluation is None or not services.settings.tuned or not services.settings.memory or not services.settings.learns:
        return
    plan = services.store.get("plan", done.plan, Plan)
    assert plan is not None
    TuningCache(Path(services.settings.tuned)).keep(
        Tuned(
            problem=services.problem.id,
            hardware=services.sheet.name,
            versions=_versions(services, plan),
            work=space.work,
            sizes=space.sizes,
            parameters=space.parameters(best.point),
            time_us=evaluation.time_us or 0.0,
            tier=(evaluation.tier or Tier.ESTIMATED).value,
        )
    )


def _versions(services: Services, plan: Plan) -> str:
    """Versions that the parent was evaluated with."""
    before: Evaluation | None = services.evaluation(plan.parent)
    return ", ".join(f"{name} {(before.versions if before else {}).get(name, 'unknown')}" for name in ("torch", "triton"))


def refusal_of(done: Tuning) -> Refusal:
    """Say why a tuning has no candidate."""
    return Refusal(reason=f"None of {len(done.trials)} trials of the tuner was right.")
