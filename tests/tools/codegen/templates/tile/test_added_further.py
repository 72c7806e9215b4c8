"""What is added to a tensor by several operators, one after the other, is one kernel that adds it all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tools.codegen.harness import made_once, run_worker, traced_text, write_job
from tests.tools.codegen.samples import function
from tools.codegen import Schedule, emit, initial_schedule
from tools.codegen.schedule.plan import plan_region

NAMES = "x, i, j"
PAIRS = "torch.randn(9, 3), torch.randint(0, 9, (37,)), torch.randint(0, 9, (37,))"
WHOLE = "torch.randint(-9, 9, (9, 3)).int(), torch.randint(0, 9, (37,)), torch.randint(0, 9, (37,))"
SAMPLES = {
    "forces": function("(lambda f: torch.zeros_like(x).index_add(0, i, f).index_add(0, j, -f))((x[i] - x[j]).sin())", PAIRS, NAMES),
    "three_times": function(
        "(lambda f: x.index_add(0, i, f).index_add(0, j, f * 2).index_add(0, (i + j) % 9, f.exp()))(x[i] - x[j])", PAIRS, NAMES
    ),
    "largest": function(
        "(lambda f: x.scatter_reduce(0, i[:, None].expand_as(f), f, 'amax').scatter_reduce(0, j[:, None].expand_as(f), -f, 'amax'))"
        "(x[i] - x[j])",
        WHOLE,
        NAMES,
    ),
}
APART = {
    "read_between": function("(lambda f: (lambda a: a.index_add(0, j, f) + a)(x.index_add(0, i, f)))((x[i] - x[j]).sin())", PAIRS, NAMES),
    "put_over": function("(lambda f: x.index_copy(0, i, f).index_copy(0, j, -f))((x[i] - x[j]).sin())", PAIRS, NAMES),
    "of_other_lengths": function("x.index_add(0, i, x[i].sin()).index_add(0, j, x[j].cos())", PAIRS.replace("(37,)", "(21,)", 1), NAMES),
}
"""References in which one of these waits for the other, or has nothing to share with it."""


def _written(name: str, copies: int = 1) -> tuple[Any, str]:
    problem, graph = traced_text((SAMPLES | APART)[name], name)
    regions = [
        region.model_copy(update={"template": planned.template.name, "parameters": planned.defaults(132) | given})
        for region in initial_schedule(graph).regions
        if (planned := plan_region(graph, region.nodes))
        for given in [{"COPIES": copies} if planned.template.name == "tile" else {}]
    ]
    return problem, emit(problem, graph, Schedule(regions=tuple(regions))).source


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run every sample in one process, those of sums with several copies of the tensor, too."""
    return made_once(tmp_path_factory, "added_further", _results)


def _results(folder: Path) -> dict[str, dict[str, Any]]:
    jobs = {name: write_job(folder, name, *_written(name)) for name in SAMPLES | APART}
    jobs |= {f"{name}_copies": write_job(folder, f"{name}_copies", *_written(name, 4)) for name in ("forces", "three_times")}
    return dict(zip(jobs, run_worker("interpreter_worker.py", [*jobs.values()], interpret=True), strict=True))


@pytest.mark.parametrize("name", [*SAMPLES, *APART, "forces_copies", "three_times_copies"])
def test_all_that_is_added_is_there(results: Any, name: str) -> None:
    """However many operators add to a tensor, and in how many kernels, it holds what the reference has."""
    result = results[name]
    assert "crash" not in result, result["crash"]
    assert result["error"] <= 1.0


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_added_one_after_the_other_is_one_kernel(name: str) -> None:
    """The positions and values of none of them pass through memory, and there is one tensor for all."""
    source = _written(name)[1]
    assert source.count("_kernel[") == 1
    assert source.count("torch.full(") + source.count(".clone(") == 1


@pytest.mark.parametrize("name", APART)
def test_what_waits_for_memory_is_another_kernel(name: str) -> None:
    """What another operator reads in between, what is stored over, and what is added along other dimensions stay apart."""
    assert _written(name)[1].count("_kernel[") > 1
