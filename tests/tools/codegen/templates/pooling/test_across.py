"""Wide windows that share little: lanes lie along each window, so that neighbouring lanes ask for neighbouring elements."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.harness import run_worker, traced_text, write_job
from tests.tools.codegen.samples import function
from tools.codegen import emit
from tools.codegen.schedule.plan import plan_region
from tools.codegen.templates.pooling.layout import fits_across
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.records import PrecisionPolicy

SHEET = load_sheet("h100")
WIDE = {
    "mean": "10 * torch.log(F.avg_pool1d(x.square(), 64, 64) + 1e-8)",
    "overlapping": "F.avg_pool1d(x, 20, 16, padding=3)",
    "outside": "F.max_pool1d(x - 9.0, 24, 24, padding=12, ceil_mode=True)",
    "planes": "F.max_pool2d(x[:, None], (3, 32), (1, 32), padding=(1, 0)).sin()",
    "no_numbers": "F.max_pool1d(torch.where(x > 2, float('nan'), x), 32)",
}


def test_wide_windows_are_right(tmp_path: Path) -> None:
    """Means and maxima, with what stands before and after them, padded, overlapping and with NaN, are those of the reference."""
    jobs = []
    for name, body in WIDE.items():
        problem, graph = traced_text(function(body, "torch.randn(2, 3, 400)"), name)
        schedule = modelled_choices(graph, SHEET, PrecisionPolicy(), most=1)[0].schedule
        assert schedule.regions[0].parameters["algorithm"] == "across"
        jobs.append(write_job(tmp_path, name, problem, emit(problem, graph, schedule).source))
    for name, result in zip(WIDE, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True):
        assert "crash" not in result, (name, result["crash"])
        assert result["error"] <= 1.0, name


@pytest.mark.parametrize("body", ["F.avg_pool1d(x, 8, 8)", "F.avg_pool1d(x, 32, 1)", "F.max_pool1d(x, 32, return_indices=True)[1]"])
def test_other_windows_have_a_lane_each(body: str) -> None:
    """Short windows, windows that are mostly shared, and positions are refused."""
    _, graph = traced_text(function(body, "torch.randn(2, 3, 400)"), "sample")
    names = tuple(node.name for node in graph.nodes if "pool" in node.target)
    assert not fits_across(plan_region(graph, names).kernel)


def test_a_wide_mean_moves_its_bytes_once() -> None:
    """Of windows of 64 halves, which lanes that lie 64 elements apart would read a sector at a time, nothing is read twice."""
    _, graph = traced_text(function(WIDE["mean"], "torch.randn(32, 8, 131072).half()"), "mean")
    (choice,) = modelled_choices(graph, SHEET, PrecisionPolicy(), most=1)
    assert choice.us == pytest.approx(38.0, rel=0.2)
