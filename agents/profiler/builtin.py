"""The built-in profiler: the rules of `tools.profiling` behind the profiler's protocol."""

from __future__ import annotations

from tools.profiling.ncu import Counters
from tools.profiling.profile import NOT_COUNTED, profile_candidate, profile_reference
from tools.records import Baselines, Evaluation, HardwareSheet, Problem, Profile


class BuiltinProfiler:
    """Names the first bottleneck whose rule holds; needs no model, no GPU and no settings."""

    name = "builtin"

    async def diagnose(
        self, problem: Problem, evaluation: Evaluation, baselines: Baselines, sheet: HardwareSheet, counters: Counters = NOT_COUNTED
    ) -> Profile:
        """Explain where the time of a passing candidate goes."""
        return profile_candidate(problem, evaluation, baselines, sheet, counters)

    async def diagnose_reference(self, problem: Problem, baselines: Baselines, sheet: HardwareSheet) -> Profile:
        """Explain where the time of the reference goes: the profile of ROOT."""
        return profile_reference(problem, baselines, sheet)
