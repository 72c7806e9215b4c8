"""Regions that wait for none of one another share their launches, and compute what they computed by themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tools.codegen.harness import generated, made_once, run_worker, traced_text, write_job
from tests.tools.codegen.samples import function
from tools.codegen import IllegalAction, Schedule, apply, emit, initial_schedule, options
from tools.codegen.ir.graph import OperatorGraph
from tools.codegen.schedule.cuda_graph import WHOLE
from tools.codegen.schedule.together import LAUNCHES, TOGETHER, together
from tools.hardware import load_sheet
from tools.records import Action, ActionKind, Problem

SHEET = load_sheet("h100")
ACTION = Action(kind=ActionKind.LAUNCH, region=WHOLE, parameters={LAUNCHES: TOGETHER})
XYZ = "x, y, z"
THREE = "torch.randn(ROWS, COLS), torch.randn(19, COLS), torch.randn(7)"
SAMPLES = {
    "scaled": function("(x * 2, y * 2, z * 2)", THREE, XYZ),
    "different": function("(x * 2, y.softmax(1), z.sin())", THREE, XYZ),
    "norms": function("torch.stack((x.square().sum(), y.square().sum(), z.square().sum())).sum().sqrt()", THREE, XYZ),
    "one_shared": function("(x * z[0], y * z[0])", THREE, XYZ),
    "turned": function("(torch.cat((x[:, 5:], x[:, :5]), 1) * 2, torch.cat((y[:, 5:], y[:, :5]), 1) * 2)", THREE, XYZ),
    "by_another_size": function("(y * x.shape[0], z + x.shape[0], x.sin())", THREE, XYZ),
    "strided": function("(x.t() * x.shape[0], y.sum(0), y.amax(1))", THREE, XYZ),
}
"""References whose regions are several grids."""
SETTINGS: dict[str, dict[str, Any]] = {"first": {}, "split": {"algorithm": "split", "SPLITS": 2, "BLOCK_N": 16}}


def scheduled(name: str, setting: str) -> tuple[Problem, OperatorGraph, Schedule]:
    """Generate everything with the same number of warps, and launch it together."""
    problem, graph = traced_text(SAMPLES[name], name)
    schedule = generated(graph, {})
    for region in schedule.regions:
        changes = SETTINGS[setting] if region.template == "rows" else {}
        parameters = {**region.parameters, **changes, "num_warps": 4}
        schedule = schedule.replaced(region.model_copy(update={"parameters": parameters}))
    return problem, graph, apply(graph, schedule, ACTION)


CASES = [(name, "first") for name in SAMPLES] + [("norms", "split")]


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    """Run every case in one process."""
    return made_once(tmp_path_factory, "together", _results)


def _results(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    jobs = []
    for case in CASES:
        problem, graph, schedule = scheduled(*case)
        jobs.append(write_job(folder, "_".join(case), problem, emit(problem, graph, schedule).source))
    return dict(zip(CASES, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_what_is_launched_together_matches_float64(results: Any, name: str, setting: str) -> None:
    """Kernels of one grid are as accurate as the reference."""
    result = results[name, setting]
    assert "crash" not in result, result["crash"]
    assert result["error"] <= 1.0


def test_alike_regions_are_one_launch_of_one_function() -> None:
    """Three tensors that are scaled are one launch, and their kernel is written once."""
    problem, graph, schedule = scheduled("scaled", "first")
    source = emit(problem, graph, schedule).source
    assert source.count("_kernel[") == 1
    assert source.count("@triton.jit") == 2


def test_each_level_of_a_split_sum_is_one_launch() -> None:
    """First all partial sums, then all that combine them: what follows waits for them and is launched by itself."""
    problem, graph, schedule = scheduled("norms", "split")
    assert len(together(graph, schedule)[0]) == 2
    assert emit(problem, graph, schedule).source.count("_and_others_") == 4


def test_regions_that_wait_for_one_another_are_not_offered_it() -> None:
    """A chain of kernels has nothing to launch together."""
    _, graph = traced_text(function("torch.softmax(torch.softmax(x, 1), 0)"), "chain")
    schedule = generated(graph, {})
    assert ACTION not in options(graph, schedule, SHEET)
    with pytest.raises(IllegalAction, match="wait for none"):
        apply(graph, schedule, ACTION)


def test_nothing_is_shared_before_it_is_generated() -> None:
    """The library's calls launch what they launch."""
    _, graph = traced_text(SAMPLES["scaled"], "scaled")
    assert not together(graph, initial_schedule(graph))
