"""Attention kernels compute what torch computes, and compile for their targets."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from tests.support.breadth import covering, unlike
from tests.tools.codegen.compute_samples import ATTENTION, HEADS, reference
from tests.tools.codegen.harness import made_once, problem_of, run_worker, small, trace_problem, traced_text, unseen, write_job
from tools.codegen import Schedule, apply, emit, initial_schedule, options
from tools.codegen.schedule.limits import limits
from tools.hardware import load_sheet
from tools.records import Action, ActionKind

SMALL_TILES = {"BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_D": 16, "BLOCK_V": 32}

ALIKE = {"half", "masked", "scaled"}
"""Samples that run no line of the generator which none of the others runs: tried by `make test-all`."""
CASES = covering([(name, tiles) for name in unlike(ATTENTION, ALIKE) for tiles in ("first", "small")])


@functools.cache
def fused(source: str) -> tuple[Any, Any, Schedule]:
    """Trace a reference and generate its attention as one region."""
    problem, graph = traced_text(source)
    schedule = initial_schedule(graph)
    legal = options(graph, schedule, load_sheet("h200"))
    together = [action for action in legal if action.region.count("+") == 2 and action.parameters.get("scope") == "together"]
    alone = [a for a in legal if a.parameters.get("implementation") == "generated" and "attention" in _ops(graph, schedule, a)]
    return problem, graph, apply(graph, schedule, (together + alone)[0])


def _ops(graph: Any, schedule: Schedule, action: Action) -> str:
    region = schedule.region(action.region)
    return " ".join(graph.by_name[name].op for name in region.nodes) if region else ""


def with_small_tiles(schedule: Schedule) -> Schedule:
    """Take tiles so small that every loop runs more than once."""
    regions = [
        r.model_copy(update={"parameters": {**r.parameters, **SMALL_TILES}}) if r.template == "attention" else r for r in schedule.regions
    ]
    return Schedule(regions=tuple(regions))


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    """Run variants with first and with small tiles at sizes they were not traced at."""
    return made_once(tmp_path_factory, "attention", _results)


def _results(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    jobs = []
    for name, tiles in CASES:
        problem, graph, schedule = fused(ATTENTION[name])
        chosen = schedule if tiles == "first" else with_small_tiles(schedule)
        jobs.append(write_job(folder, f"{name}_{tiles}", unseen(small(ATTENTION[name])), emit(problem, graph, chosen).source))
    return dict(zip(CASES, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "tiles"), CASES)
def test_attention_matches_float64(results: Any, name: str, tiles: str) -> None:
    """One kernel computes the whole attention as accurately as the reference, at small odd sizes."""
    assert "crash" not in results[name, tiles], results[name, tiles]["crash"]
    assert results[name, tiles]["error"] <= 1.0


@pytest.mark.slow
def test_attention_compiles(tmp_path: Path) -> None:
    """Attention in float32 and float16 compiles for Hopper and Ampere."""
    jobs = []
    for name, arch in (("written_out", 90), ("half", 90), ("causal", 80)):
        problem, graph, schedule = fused(ATTENTION[name])
        job = write_job(tmp_path, f"{name}_{arch}", unseen(small(ATTENTION[name])), emit(problem, graph, schedule).source)
        jobs.append({**job, "arch": arch})
    for result in run_worker("compile_worker.py", jobs, interpret=False):
        assert "crash" not in result, result["crash"]
        assert len(result["kernels"]) == 1


def test_written_out_attention_is_offered_as_one_fusion() -> None:
    """Product, softmax and product are three natural regions, and one action fuses them."""
    _, graph, schedule = fused(ATTENTION["written_out"])
    assert schedule.regions[0].template == "attention"
    assert {"softmax", "matmul"} <= {graph.by_name[name].op for name in schedule.regions[0].nodes}


def test_attention_with_wide_heads_is_written_out() -> None:
    """Heads of more elements than one kernel keeps make two products and a softmax; masked or narrower, attention stays one operator."""
    body = "F.scaled_dot_product_attention(q, k, v{})"
    found = []
    for more, width in (("", "272"), (", is_causal=True", "272"), ("", "256")):
        graph = trace_problem(problem_of(reference(body.format(more), HEADS.replace("DIM", width), "q, k, v")))
        found.append([node.op for node in graph.nodes])
    assert found == [["transpose", "matmul", "mul", "softmax", "matmul"], *[["scaled_dot_product_attention"]] * 2]


def test_a_causal_kernel_skips_keys_after_its_rows() -> None:
    """A causal attention's loop ends with the last row of its tile."""
    problem, graph, schedule = fused(ATTENTION["causal"])
    assert "end = tl.minimum(n_cols, (pid_m + 1) * BLOCK_M)" in emit(problem, graph, schedule).source


def test_attention_in_doubles_is_refused_with_its_reason() -> None:
    """What is not supported is said."""
    graph = trace_problem(problem_of(reference("F.scaled_dot_product_attention(q.double(), k.double(), v.double())", HEADS, "q, k, v")))
    assert any("attention in float64" in limit.reason for limit in limits(graph))


def test_half_attention_has_no_precision_to_choose() -> None:
    """Only float32 products can be computed in several ways."""
    _, graph, schedule = fused(ATTENTION["half"])
    kinds = {action.kind for action in options(graph, schedule, load_sheet("h200")) if action.region == "r0"}
    assert ActionKind.PRECISION not in kinds
    assert ActionKind.TILING in kinds
