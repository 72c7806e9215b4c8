"""What a profiler is told, and what it must give back."""

from __future__ import annotations

from typing import Protocol

from tools.evaluation.protocol import Baselines
from tools.records import Evaluation, HardwareSheet, Problem, Profile


class Profiler(Protocol):
    """Names one bottleneck, with its evidence."""

    name: str

    async def diagnose(self, problem: Problem, evaluation: Evaluation, baselines: Baselines, sheet: HardwareSheet) -> Profile:
        """Explain where the time of a passing candidate goes."""

    async def diagnose_reference(self, problem: Problem, baselines: Baselines, sheet: HardwareSheet) -> Profile:
        """Explain where the time of the reference goes: the profile of ROOT."""
