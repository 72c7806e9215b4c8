"""Evaluating once: a job that is finished or under way is never repeated, in this process or after a resume."""

from __future__ import annotations

import asyncio

from graphs.run.context import Services
from graphs.run.waiting import pausing
from tools.records import Evaluation, EvaluationRequest


async def judge(services: Services, request: EvaluationRequest) -> Evaluation:
    """Return the finished evaluation of this job, making it first where there is none; a weakened one raises UserError."""
    async with services.judging.setdefault(request.key, asyncio.Lock()):
        known = services.store.get("evaluation", request.key, Evaluation)
        if known is not None:
            return known.demand_whole()
        with pausing():
            evaluation = await services.pool.evaluate(request)
        services.store.put("evaluation", request.key, evaluation, subject=request.candidate)
        return evaluation
