"""The pool protocol: whoever can judge a candidate, here or elsewhere."""

from __future__ import annotations

from typing import Protocol

from tools.profiling.ncu import Counters
from tools.records import Baselines, Evaluation, EvaluationRequest, HardwareSheet, Problem


class EvaluatorPool(Protocol):
    """Judges candidates in sandboxes; several `evaluate` calls may be in flight."""

    @property
    def name(self) -> str:
        """How the pool is shown to people, e.g. `local (1 GPU)`, `local (interpreter)`; it may change as workers come and go."""

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge one candidate; a bad candidate is a verdict, a failing machine raises MachineError."""

    async def baselines(self, problem: Problem, target: HardwareSheet) -> Baselines:
        """Time the reference (eager, torch.compile), or estimate it where there is no GPU."""

    async def counters(self, request: EvaluationRequest) -> Counters:
        """Read the hardware counters of one call of a candidate that has passed; whatever is missing is in the note."""

    async def close(self) -> None:
        """End every process the pool started."""
