"""Looking at a source without timing it: compiled, or checked at small sizes as well. It is no evaluation, and none of the budget's."""

from __future__ import annotations

import asyncio
from typing import Literal

from graphs.run.context import Services
from graphs.run.works import working
from tools.records import Evaluation, EvaluationRequest, Verdict, content_hash

INSPECTION = "inspection"
"""Kind of record by which a store keeps what was found, by `inspection_name`."""


def inspection_name(request: EvaluationRequest) -> str:
    """Name what is looked at: a run has one problem, and one that repeats it does not know its small sizes."""
    return content_hash(request.depth, request.source, request.target.name)


async def inspect(services: Services, source: str, candidate: str, depth: Literal["build", "check"]) -> Evaluation:
    """Compile a source, or check it at the small sizes as well; what was found before is given again."""
    request = EvaluationRequest(
        problem=services.problem,
        variants=services.variants,
        candidate=candidate,
        source=source,
        target=services.sheet,
        depth=depth,
        timeout_s=services.settings.timeout_s,
    )
    name = inspection_name(request)
    async with services.judging.setdefault(name, asyncio.Lock()):
        known = services.store.get(INSPECTION, name, Evaluation)
        if known is not None:
            return known.demand_whole()
        with working(services.store, "inspection"):
            found = await services.pool.evaluate(request)
        if found.verdict is not Verdict.INFRASTRUCTURE:
            services.store.put(INSPECTION, name, found, subject=candidate)
        return found
