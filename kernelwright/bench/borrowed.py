"""An evaluator that several runs share: a run that ends leaves it open for the others."""

from __future__ import annotations

from tools.evaluation.protocol import EvaluatorPool
from tools.profiling.ncu import Counters
from tools.records import Baselines, Evaluation, EvaluationRequest, HardwareSheet, Problem


class Borrowed:
    """Passes everything on but `close`."""

    def __init__(self, pool: EvaluatorPool) -> None:
        """Borrow `pool`; its owner closes it."""
        self._pool = pool
        self.name = pool.name

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge one candidate."""
        return await self._pool.evaluate(request)

    async def baselines(self, problem: Problem, target: HardwareSheet) -> Baselines:
        """Time the reference, or estimate it."""
        return await self._pool.baselines(problem, target)

    async def counters(self, request: EvaluationRequest) -> Counters:
        """Read the hardware counters of a candidate."""
        return await self._pool.counters(request)

    async def close(self) -> None:
        """Leave it open."""
