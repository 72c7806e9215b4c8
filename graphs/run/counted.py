"""Hardware counters of the candidates that deserve the seconds: each best one so far, and the champion."""

from __future__ import annotations

import asyncio

from pydantic import Field

from agents.models import BudgetReached
from agents.models.deadline import in_time
from graphs.run.context import Services
from graphs.run.settings import settings_of
from graphs.run.works import working
from tools.errors import MachineError
from tools.profiling.ncu import Counters
from tools.profiling.profile import NOT_COUNTED
from tools.records import Evaluation, EvaluationRequest, Profile, Record
from tools.tracing import RunStore


class Fastest(Record):
    """The fastest candidate so far of a run."""

    candidate: str
    time_us: float = Field(gt=0)


async def counters_of_best(
    services: Services, request: EvaluationRequest, evaluation: Evaluation, *, is_planned_on: bool = True
) -> Counters:
    """Read the counters of a candidate that is faster by the run's floor than all before; of others, and where nothing was timed, none.

    They take the device for 6 s: where nobody will plan on the candidate, or no evaluation is left, only the champion's are read, at the
    end.
    """
    is_planned_on = is_planned_on and services.evaluations_left() != 0
    if evaluation.timing is None or services.settings.counters == "never" or not is_planned_on:
        return NOT_COUNTED
    time_us = evaluation.timing.candidate.median_us
    before = services.store.get("fastest", services.run, Fastest)
    if before is not None and before.time_us <= time_us * services.settings.floor and before.candidate != request.candidate:
        return NOT_COUNTED
    services.store.put("fastest", services.run, Fastest(candidate=request.candidate, time_us=time_us))
    await _all_judged(services)
    now = services.store.get("fastest", services.run, Fastest)
    if now is not None and now.candidate != request.candidate:
        return NOT_COUNTED
    return await _counters_in_time(services, request, services.time_left())


async def _all_judged(services: Services) -> None:
    """Wait until nobody is judged: one of those may be faster, and until then the device is theirs."""
    while under_way := [lock for lock in services.judging.values() if lock.locked()]:
        async with under_way[0]:
            pass


async def _counters_in_time(services: Services, request: EvaluationRequest, left: float | None) -> Counters:
    """Read counters as long as there is time: nothing else waits for them."""
    try:
        return await in_time(lambda: counters_of(services, request), left, "Reading counters")
    except BudgetReached:
        return NOT_COUNTED


async def counters_of(services: Services, request: EvaluationRequest) -> Counters:
    """Read the counters of a candidate once; a machine that fails at it is a note and no end of a run."""
    # two plans may lead to the same source
    async with services.judging.setdefault(f"counters of {request.key}", asyncio.Lock()):
        known = services.store.get("counters", request.key, Counters)
        if known is not None:
            return known
        try:
            with working(services.store, "counters"):
                found = await services.pool.counters(request)
        except MachineError as error:
            found = Counters(note=f"No hardware counters were read: {error.what}")
        services.store.put("counters", request.key, found, subject=request.candidate)
        return found


async def count_champion(services: Services, request: EvaluationRequest) -> None:
    """Profile a candidate that was confirmed with its counters, where it was not when it passed."""
    evaluation = services.evaluation(request.candidate)
    if evaluation is None or evaluation.timing is None or services.settings.counters == "never":
        return
    search = services.request(services.candidate(request.candidate))
    if services.store.get("counters", search.key, Counters) is not None:
        return
    counters = await _counters_in_time(services, search, services.time_left(confirming=True))
    if not counters.figures:
        return
    profile: Profile = await services.team.profiler.diagnose(services.problem, evaluation, services.baselines(), services.sheet, counters)
    services.store.put("profile", request.candidate, profile)


def why_uncounted(store: RunStore, candidate: str) -> str:
    """Say why a candidate has no hardware counters; empty where they were read."""
    known = list(store.all("counters", Counters, subject=candidate).values())
    if known:
        return "" if any(one.figures for one in known) else known[-1].note
    if not any(one.timing for one in store.all("evaluation", Evaluation, subject=candidate).values()):
        return "Hardware counters are read where a candidate is timed, and this one was not."
    if settings_of(store).counters == "never":
        return "This run asked for no hardware counters."
    return "Hardware counters are read of each best candidate so far that can be planned on, and of the champion; this one was neither."
