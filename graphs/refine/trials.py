"""Trials of a tuning: points of a parent, each a candidate that is judged like any other and counted in the budget."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from agents.coder.protocol import Draft
from agents.models import BudgetReached
from graphs.run.context import Services
from graphs.run.judge import judge
from graphs.run.records import Trial
from tools.records import Candidate, EvaluationRequest, Plan
from tools.tuning import Point

Write = Callable[[str], Draft | None]
"""Writes a point as a source; None where it cannot be written."""
Tried = Callable[[EvaluationRequest], None]
"""Hears of a trial when it has been judged."""


def unheard(request: EvaluationRequest) -> None:
    """Tell nobody of a trial."""


async def all_tried(services: Services, plan: Plan, points: Sequence[Point], write: Write, tried: Tried) -> list[Trial]:
    """Try points side by side; where the machine fails at one, the others end first, so that nothing that was evaluated is lost."""
    ended = await asyncio.gather(*(_try(services, plan, point, write, tried) for point in points), return_exceptions=True)
    wave = [one for one in ended if isinstance(one, Trial)]
    for one in ended:
        if isinstance(one, BaseException):
            raise one
    return wave


def best_of(trials: Sequence[Trial]) -> str:
    """Candidate id of the fastest right trial; empty where there is none."""
    timed = [trial for trial in trials if trial.time_us is not None]
    return min(timed, key=lambda trial: trial.time_us or 0.0).candidate if timed else ""


async def _try(services: Services, plan: Plan, point: Point, write: Write, tried: Tried) -> Trial:
    untried = Trial(candidate="", point=point.name, predicted_us=point.predicted_us)
    draft = await asyncio.to_thread(write, point.name)
    if draft is None:
        return untried
    candidate = Candidate(
        problem=services.problem.id, parent=plan.parent, action=plan.action, source=draft.source, schedule=draft.schedule,
        coder="builtin" if draft.schedule else "tuner", notes=draft.notes,
    )  # fmt: skip
    services.store.put_candidate(candidate)
    request = services.request(candidate)
    try:
        evaluation = await judge(services, request)
    except BudgetReached:
        return untried
    tried(request)
    return untried.model_copy(update={"candidate": candidate.id, "verdict": evaluation.verdict, "time_us": evaluation.time_us})
