"""Carrying out the action `tune`: trials in waves, each judged like any other candidate and counted in the budget."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agents.coder.protocol import Refusal
from agents.coder.tuning import TuningSpace, structure_of
from agents.records.tune import TRIALS
from graphs.refine.sweep import sweep_numbers
from graphs.refine.trials import Tried, all_tried, best_of, unheard
from graphs.run.context import Services
from graphs.run.records import Trial, Tuning
from tools.records import Evaluation, Plan, Tier
from tools.tuning import Search, Tuned, TuningCache

WAVE = 8
"""Trials in flight at once: builds and checks of eight share one start of the evaluator's processes."""


async def carry_out(services: Services, plan: Plan, tried: Tried = unheard) -> Tuning:
    """Carry out a plan's tuning: of its parent's schedule, or where it has none of the numbers in its text; `tried` hears of each trial."""
    written = services.candidate(plan.parent).schedule is None
    return await (sweep_numbers if written else tune_schedule)(services, plan, tried)


async def tune_schedule(services: Services, plan: Plan, tried: Tried = unheard) -> Tuning:
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
            points = [point for name in names for point in space.tunable.points if point.name == name]
            wave = await all_tried(services, plan, points, space.draft, tried)
            for trial in wave:
                search.tell(trial.point, trial.time_us)
            trials += wave
            begun = begun.model_copy(update={"trials": tuple(trials), "best": best_of(trials)})
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
