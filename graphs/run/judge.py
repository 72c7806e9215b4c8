"""Evaluating once: a job that is finished or under way is never repeated, in this process or after a resume.

What the machine failed at is not finished: asked for again, it is tried again.
"""

from __future__ import annotations

import asyncio

from agents.models import BudgetReached
from agents.models.deadline import in_time
from graphs.run.context import Services
from graphs.run.late_baselines import keep_late_baselines
from graphs.run.records import CutOff
from graphs.run.waiting import pausing
from graphs.run.works import working
from tools.records import Evaluation, EvaluationRequest, Verdict


async def judge(services: Services, request: EvaluationRequest) -> Evaluation:
    """Return the finished evaluation of this job, making it first where there is none; a weakened one raises UserError.

    Raises BudgetReached where the wall time is over first; the job is then not finished.
    """
    async with services.judging.setdefault(request.key, asyncio.Lock()):
        known = services.store.get("evaluation", request.key, Evaluation)
        if known is not None and known.verdict is not Verdict.INFRASTRUCTURE:
            return known.demand_whole()
        left = services.time_left(confirming=request.stage == "confirm")
        try:
            with pausing(), working(services.store, "evaluation", request.key):
                evaluation = await in_time(lambda: services.pool.evaluate(request), left, "An evaluation")
        except BudgetReached as reached:
            services.store.put("cut", request.key, CutOff(what=reached.what), subject=request.candidate)
            raise
        services.store.put("evaluation", request.key, evaluation, subject=request.candidate)
        keep_late_baselines(services, evaluation)
        return evaluation
