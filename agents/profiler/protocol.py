"""What a profiler is told, and what it must give back."""

from __future__ import annotations

from typing import Protocol

from tools.profiling.ncu import Counters
from tools.profiling.profile import NOT_COUNTED
from tools.records import Baselines, Evaluation, HardwareSheet, Problem, Profile


class Profiler(Protocol):
    """Names one bottleneck, with its evidence."""

    name: str

    async def diagnose(
        self, problem: Problem, evaluation: Evaluation, baselines: Baselines, sheet: HardwareSheet, counters: Counters = NOT_COUNTED
    ) -> Profile:
        """Explain where the time of a passing candidate goes; `counters` are the hardware's own, where they were read."""

    async def diagnose_reference(self, problem: Problem, baselines: Baselines, sheet: HardwareSheet) -> Profile:
        """Explain where the time of the reference goes: the profile of ROOT."""
