"""Carrying out the action `tune` on a written source: single moves are compiled and ranked by the cost model, then points are tried."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable

from agents.coder.written import WrittenSpace
from agents.records.tune import TRIALS
from graphs.refine.trials import Tried, all_tried, best_of, unheard
from graphs.run.context import Services
from graphs.run.inspecting import inspect
from graphs.run.records import Trial, Tuning
from tools.cost.estimate import estimate_time
from tools.records import Candidate, Evaluation, Plan, Verdict
from tools.tuning import Search

WAVE = 4
"""Trials in flight at once; less than a schedule's tuner has, since what a number does is learnt from the first ones."""
SHARE = 3
"""A sweep takes at most one of this many evaluations that are left, and looking at its moves one of this many seconds: the rest is for what
only a new kernel can gain."""
BROKEN = (Verdict.WRONG, Verdict.CRASHED, Verdict.UNSTABLE)
"""How a kernel ends whose number was no free one."""


async def sweep_numbers(services: Services, plan: Plan, tried: Tried = unheard) -> Tuning:
    """Sweep the numbers of a plan's parent, or finish it: what was judged before a kill is not judged again."""
    async with services.judging.setdefault("tuning", asyncio.Lock()):
        parent, before = services.candidate(plan.parent), services.evaluation(plan.parent)
        space = WrittenSpace(services.problem, parent.source)
        own_us = (before.time_us if before else None) or 1.0
        begun = services.store.get("tuning", plan.id, Tuning) or _begin(services, plan, space)
        ratios = await _moves(services, parent, space)
        trials: list[Trial] = []
        while len(trials) < begun.allowed and services.time_left() != 0:
            points = {point.name: point for point in space.points(own_us, ratios, _fixed(space, trials))}
            search = Search(list(points.values()), seed=services.settings.search_settings.seed)
            names = _next(search, space.own, own_us, trials, min(WAVE, begun.allowed - len(trials)))
            if not names:
                break
            trials += await all_tried(services, plan, [points[name] for name in names], space.draft, tried)
            begun = begun.model_copy(update={"trials": tuple(trials), "best": best_of(trials)})
            services.store.put("tuning", plan.id, begun, subject=plan.parent)
        return begun


def _begin(services: Services, plan: Plan, space: WrittenSpace) -> Tuning:
    left, wanted = services.evaluations_left(), int(plan.action.parameters[TRIALS])
    allowed = wanted if left is None else max(1, min(wanted, left // SHARE))
    begun = Tuning(plan=plan.id, structure=space.structure, allowed=allowed, known=(), points=len(space.points(1.0, {})))
    services.store.put("tuning", plan.id, begun, subject=plan.parent)
    return begun


def _next(search: Search, own: str, own_us: float, trials: Iterable[Trial], count: int) -> tuple[str, ...]:
    search.tell(own, own_us)
    for trial in trials:
        search.tell(trial.point, trial.time_us)
    return search.ask(count)


def _fixed(space: WrittenSpace, trials: list[Trial]) -> frozenset[str]:
    """Numbers without which nothing that was tried came out right: sizes of the problem in disguise."""
    broken = [space.changed(trial.point) for trial in trials if trial.verdict in BROKEN]
    right = frozenset().union(*(space.changed(trial.point) for trial in trials if trial.verdict is Verdict.PASS))
    return frozenset().union(*(changed - right for changed in broken if len(changed - right) == 1))


async def _moves(services: Services, parent: Candidate, space: WrittenSpace) -> dict[str, float]:
    """Modelled time of each move of one number over that of the source as it is, from compiled kernels; infinite: it does not build."""
    names = (space.own, *space.moves())
    sources = [parent.source if name == space.own else space.draft(name).source for name in names]
    built = await _built(services, sources, parent.id)
    times = [_modelled_us(services, one) if one else None for one in built]
    own_us = times[0]
    if own_us is None or own_us == math.inf:
        return {name: math.inf for name, us in zip(names, times, strict=True) if us == math.inf}
    return {name: us / own_us for name, us in zip(names, times, strict=True) if us is not None}


async def _built(services: Services, sources: Iterable[str], parent: str) -> list[Evaluation | None]:
    """Compile moves side by side, in a part of the time that is left; None for what was not ended by then."""
    tasks = [asyncio.ensure_future(inspect(services, source, parent, "build")) for source in sources]
    left = services.time_left()
    try:
        await asyncio.wait(tasks, timeout=None if left is None else left / SHARE)
    finally:
        waiting = [task for task in tasks if not task.done() and task.cancel()]
        if waiting:
            await asyncio.wait(waiting)
    return [None if task.cancelled() else task.result() for task in tasks]


def _modelled_us(services: Services, built: Evaluation) -> float | None:
    """The cost model's time of compiled launches; infinite where the source does not build, None where its launches are not known."""
    if built.verdict in (Verdict.BUILD_FAILED, Verdict.TIMED_OUT):
        return math.inf
    if not built.launches or not built.kernels:
        return None
    if any(kernel.shared_bytes > services.sheet.shared_kib_per_block * 1024 for kernel in built.kernels):
        return math.inf
    # what is only compiled is so at the first shape
    problem = services.problem.at(services.problem.shapes[0]) if services.problem.shapes else services.problem
    return estimate_time(problem, built.launches, built.kernels, services.sheet).candidate_us
