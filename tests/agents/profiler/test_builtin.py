"""The built-in profiler behind its protocol."""

from __future__ import annotations

from agents.profiler.builtin import BuiltinProfiler
from tests.support.makers import launch, passed, problem, timing
from tools.cost.estimate import estimate_reference
from tools.hardware import load_sheet
from tools.records import ROOT, Baselines, Bottleneck, Tier

ROWS = (65_536, 1024)
STREAM = problem((ROWS,), ROWS)
SHEET = load_sheet("h200")
BASELINES = Baselines(tier=Tier.ESTIMATED, estimate=estimate_reference(STREAM, SHEET), device="h200")


async def test_a_candidate_near_the_copy_rate_is_bound_by_the_memory() -> None:
    """A streaming kernel at 96 % of a copy's rate has nothing left but the memory, and the evidence cites the rate."""
    profile = await BuiltinProfiler().diagnose(STREAM, passed(timing=timing(130.0), launches=(launch(ROWS, ROWS),)), BASELINES, SHEET)
    assert (profile.candidate, profile.profiler) == ("child", "builtin")
    assert profile.bottleneck is Bottleneck.DRAM_BANDWIDTH
    assert "96 % of a copy's rate" in profile.evidence


async def test_the_reference_is_root() -> None:
    """The reference's profile is that of ROOT on the target."""
    profile = await BuiltinProfiler().diagnose_reference(STREAM, BASELINES, SHEET)
    assert (profile.candidate, profile.target) == (ROOT, "h200")
