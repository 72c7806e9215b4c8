"""Rows of a tile that go to one place are added up first, whatever their order; others are added one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tools.codegen.harness import generated, made_once, run_worker, traced_text, write_job
from tests.tools.codegen.samples import function
from tools.codegen import Schedule, emit, initial_schedule
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.plan import TILE, plan_region
from tools.codegen.templates.tile.alike import merged_share

XYZ = "x, y, z"
INPUTS = "torch.randn(9, 40), {}, torch.randn(37, 40)"
SAMPLES = {
    "in_order": function("x.index_add(0, y, z * 2)", INPUTS.format("torch.arange(37) // 5"), XYZ),
    "in_no_order": function("x.index_add(0, y, z)", INPUTS.format("torch.randint(0, 9, (37,))"), XYZ),
    "all_to_one": function("x.index_add(0, y, z, alpha=0.5)", INPUTS.format("torch.full((37,), 3)"), XYZ),
    "to_the_first": function("x.index_add(0, y, z)", INPUTS.format("torch.zeros(37).long()"), XYZ),
    "whole_numbers": function(
        "x.index_add(0, y, z)", "torch.randint(0, 9, (9, 40)), torch.arange(37) // 5, torch.randint(-9, 9, (37, 40))", XYZ
    ),
    "put": function("x.index_put((y // 2,), z, accumulate=True)", INPUTS.format("torch.arange(37) // 3"), XYZ),
    "spread": function("x.scatter_add(0, y[:, None].expand_as(z), z)", INPUTS.format("torch.arange(37) // 5"), XYZ),
    "largest": function(
        "x.scatter_reduce(0, y[:, None].expand_as(z), z, 'amax')",
        "torch.randint(0, 9, (9, 40)).int(), torch.arange(37) // 5, torch.randint(-9, 9, (37, 40)).int()",
        XYZ,
    ),
}
BESIDE = {
    name: function(
        f"(lambda d: (lambda r: (d / (r + 1), x.new_zeros(9, 1).{write}))(d.square().sum(1, keepdim=True)))(x[y] - x[z])",
        "torch.randn(9, 3), torch.randint(0, 9, (37,)), torch.randint(0, 9, (37,))",
        XYZ,
    )
    for name, write in {"counted": "index_add(0, y, torch.ones_like(r))", "added": "index_add(0, z, r)"}.items()
}
"""References that add one number a row beside a result of three columns."""
TILES = {"algorithm": "tile", "BLOCK_M": 4, "BLOCK_N": 16}


def _written(name: str) -> tuple[Any, str]:
    problem, graph = traced_text(SAMPLES[name], name)
    names = tuple(node.name for node in graph.nodes if not is_view(node))
    first = initial_schedule(graph).regions[0]
    planned = plan_region(graph, names, TILE)
    region = first.model_copy(update={"id": "r0", "nodes": names, "template": TILE, "parameters": planned.defaults(132) | TILES})
    return problem, emit(problem, graph, Schedule(regions=(region,))).source


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run every sample in one process."""
    return made_once(tmp_path_factory, "alike", _results)


def _results(folder: Path) -> dict[str, dict[str, Any]]:
    jobs = [write_job(folder, name, *_written(name)) for name in SAMPLES]
    for name, text in BESIDE.items():
        problem, graph = traced_text(text, name)
        jobs.append(write_job(folder, name, problem, emit(problem, graph, generated(graph, {})).source))
    return dict(zip((*SAMPLES, *BESIDE), run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.parametrize("name", SAMPLES)
def test_what_goes_to_one_place_is_added_up(results: Any, name: str) -> None:
    """Merged or not, what memory holds is what the reference has."""
    result = results[name]
    assert "crash" not in result, result["crash"]
    assert result["error"] <= 1.0
    assert "rows_together" in _written(name)[1]


@pytest.mark.parametrize("name", BESIDE)
def test_what_a_row_adds_beside_wider_results_is_added_once(results: Any, name: str) -> None:
    """A number that all columns of a row share goes to its place from the first of them alone."""
    result = results[name]
    assert "crash" not in result, result["crash"]
    assert result["error"] <= 1.0


def test_rows_of_long_runs_are_merged_more_often() -> None:
    """Where each place is gone to once, nothing is expected of it."""
    assert merged_share(1000, 1000, 8) == 1.0
    assert merged_share(1000, 10, 8) < merged_share(1000, 100, 8) < 1.0
