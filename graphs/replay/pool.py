"""A pool that judges nothing: it answers with what a recorded run was told."""

from __future__ import annotations

from agents.models import BudgetReached, NotRecorded
from graphs.run.inspecting import INSPECTION, inspection_name
from graphs.run.records import OTHER_BASELINES, CutOff
from tools.profiling.ncu import Counters
from tools.records import Baselines, Evaluation, EvaluationRequest, HardwareSheet, Problem
from tools.tracing import RunStore


class RecordedPool:
    """Finds an evaluation by its job, or by candidate and stage where the job has another key in this version."""

    name = "record"

    def __init__(self, record: RunStore) -> None:
        """Answer from `record`."""
        self._record = record

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Return the recorded verdict; NotRecorded where this candidate was never judged at this stage."""
        if request.depth != "whole":
            return self._inspected(request)
        found = self._record.get("evaluation", request.key, Evaluation)
        if found is not None:
            return found
        known = list(self._record.all("evaluation", Evaluation, subject=request.candidate).values())
        cut = self._record.get("cut", request.key, CutOff)
        if cut is not None:
            raise BudgetReached(cut.what, "Give it more --minutes.")
        stage = 1 if request.stage == "confirm" else 0
        if len(known) > stage:
            return known[stage]
        raise NotRecorded(f"Candidate {request.candidate} is judged ({request.stage}), which the recorded run never did.", "Look at it.")

    def _inspected(self, request: EvaluationRequest) -> Evaluation:
        found = self._record.get(INSPECTION, inspection_name(request), Evaluation)
        if found is None:
            raise NotRecorded(f"A source is looked at ({request.depth}), which the recorded run never did.", "Look at it.")
        return found

    async def baselines(self, problem: Problem, target: HardwareSheet) -> Baselines:
        """Return how fast the reference was, under the run's own policy or under the flags of another."""
        own = next(iter(self._record.all("problem", Problem).values()), problem)
        if problem.policy.name != own.policy.name:
            found = self._record.get(OTHER_BASELINES, problem.policy.name, Baselines)
        else:
            found = next(iter(self._record.all("baselines", Baselines).values()), None)
        if found is None:
            raise NotRecorded("The reference is timed, which the recorded run never did.", "Look at the run with `kernelwright trace`.")
        return found

    async def counters(self, request: EvaluationRequest) -> Counters:
        """Return the recorded counters."""
        known = list(self._record.all("counters", Counters, subject=request.candidate).values())
        return known[0] if known else Counters(note="The recorded run read no counters here.")

    async def close(self) -> None:
        """Nothing is open."""
