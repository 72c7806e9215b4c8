"""Scans of every kind: from either end, exclusive, masked, of rows that several programs share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.breadth import covering
from tests.tools.codegen.harness import (
    for_targets,
    generated,
    made_once,
    problem_of,
    run_worker,
    small,
    trace_problem,
    traced_text,
    unseen,
    write_job,
)
from tests.tools.codegen.samples import function
from tests.tools.codegen.templates.test_memory_bound import settings
from tools.codegen import IllegalAction, apply, emit, initial_schedule, limits, options
from tools.codegen.schedule.plan import plan_region
from tools.cost.launches import region_launches, region_us
from tools.hardware import load_sheet
from tools.records import Action, ActionKind

EXCLUSIVE = "torch.cat((torch.zeros_like(x.select(1, 0).unsqueeze(1)), torch.cumsum(x.narrow(1, 0, x.size(1) - 1), 1)), 1)"
SCANS: dict[str, str] = {
    "both_ends": function("(torch.cumsum(x, 1) * 2, torch.cumsum(x.flip(1), dim=1).flip(1), x.flip(0).cumsum(0).flip(0))"),
    "products": function("(torch.cumprod(x * 0.1 + 1, 1), torch.cumprod(x * 0.1 + 1, 0), (x * 0.1 + 1).flip(1).cumprod(1).flip(1))"),
    "exclusive": function(
        f"({EXCLUSIVE}, F.pad(torch.cumsum(x, 0), (0, 0, 1, 0)) + 1, F.pad(x[:, :-1].cumsum(1), (1, 0)), "
        "torch.cat((x.new_ones(1, x.shape[1]), torch.cumprod(x * 0.1 + 1, 0))))"
    ),
    "masked": function(
        "(torch.cumsum(x * m, dim=1), m.cumsum(1), torch.cumsum(torch.softmax(x, 1) * m, 1), (x - x.mean(0)).cumsum(0) + x.amax(0))",
        "torch.randn(ROWS, COLS), torch.rand(ROWS, COLS) > 0.5",
        "x, m",
    ),
    "chained": function("(x.cumsum(1).cumsum(1), x.cumsum(1).amax(1))"),
    "between": function("(y.cumsum(1), torch.cumsum(y * 2, dim=2) + 1)", "torch.randn(3, ROWS, COLS)", "y"),
}
"""By name: source text."""
WAYS = {
    "whole": settings("flat", algorithm="registers"),
    "blocks": settings("flat", algorithm="looped", ROWS=2),
    "shared": settings("flat", algorithm="split", num_stages=2),
    "shared_rows": settings("flat", algorithm="split", ROWS=2, SPLITS=4),
}
CASES = covering([(name, way) for name in SCANS for way in WAYS])
COMPILED = {"exclusive": "blocks", "products": "shared", "both_ends": "shared_rows"}
"""Samples that are compiled, and their way."""
TARGETS = (80, 90, 100, "gfx942")
COMPILED_FOR = covering([(name, target) for name in COMPILED for target in TARGETS])


def graph_of(name: str) -> tuple[Any, Any]:
    """Trace a sample once."""
    return traced_text(SCANS[name], name)


@pytest.fixture(scope="session")
def judged(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    """Run every case in one process."""
    return made_once(tmp_path_factory, "scans", _judged)


def _judged(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    jobs = {}
    for name, way in CASES:
        problem, graph = graph_of(name)
        other = unseen(small(SCANS[name]), name)
        jobs[name, way] = write_job(folder, f"{name}_{way}", other, emit(problem, graph, generated(graph, WAYS[way])).source)
    return dict(zip(jobs, run_worker("interpreter_worker.py", list(jobs.values()), interpret=True), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "way"), CASES)
def test_a_scan_gives_the_references_results(judged: Any, name: str, way: str) -> None:
    """In registers, block by block and shared by several programs, a scan is as accurate as the reference's."""
    result = judged[name, way]
    assert "crash" not in result, result["crash"]
    assert result["error"] <= 1.0


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int | str], dict[str, Any]]:
    """Compile three samples."""
    return made_once(tmp_path_factory, "scans_compiled", _compiled)


def _compiled(folder: Path) -> dict[tuple[str, int | str], dict[str, Any]]:
    jobs = {}
    for name, way in COMPILED.items():
        problem, graph = graph_of(name)
        jobs[name] = write_job(folder, name, problem, emit(problem, graph, generated(graph, WAYS[way])).source)
    return for_targets(jobs, COMPILED_FOR)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_scans_compile(compiled: Any, target: int | str) -> None:
    """Exclusive scans, products and shared rows compile for a target, and for each target there are some."""
    for name in (name for name, at in COMPILED_FOR if at == target):
        result = compiled[name, target]
        assert "crash" not in result, result["crash"]
        assert len(result["kernels"]) >= 3


def test_an_exclusive_scan_is_one_region_that_reads_its_input_once() -> None:
    """Zeros laid before a running sum cost no pass of their own, by cat or by pad, and nothing is left to the library."""
    problem, graph = graph_of("exclusive")
    assert not limits(graph)
    regions = initial_schedule(graph).regions
    assert len(regions) == 4
    source = emit(problem, graph, generated(graph, WAYS["whole"])).source
    # two of the four are alike and share their kernel
    assert source.count("tl.load(") == source.count("@triton.jit") == 3


def test_other_numbers_before_a_scan_stay_where_they_are() -> None:
    """Ones before a running sum, and a sum that somebody else reads, are not scanned with what follows."""
    ones = trace_problem(
        problem_of(SCANS["exclusive"].replace("torch.zeros_like(", "torch.ones_like(").replace("x.new_ones", "x.new_zeros"))
    )
    assert [node.op for node in ones.nodes].count("cat") == 2
    assert next(node.name for node in ones.nodes if node.op == "cumsum") == "cumsum"
    shared = "(lambda s: (s * 2, F.pad(s, (1, 0))))(x.cumsum(1))"
    assert [node.op for node in trace_problem(problem_of(function(shared))).nodes] == ["cumsum", "mul", "pad"]


def test_a_scan_that_another_waits_for_is_not_split() -> None:
    """A running sum of a running sum needs one program a row, and the action says so."""
    _, graph = graph_of("chained")
    schedule = initial_schedule(graph)
    schedule = apply(graph, schedule, options(graph, schedule, load_sheet("h200"))[0])
    split = Action(kind=ActionKind.ALGORITHM, region=schedule.regions[0].id, parameters={"algorithm": "split"})
    with pytest.raises(IllegalAction, match="waits for"):
        apply(graph, schedule, split)


def test_few_long_scans_start_split_and_read_twice() -> None:
    """Rows too few to fill the device are shared from the start; the model counts two launches and the input's second reading."""
    text = SCANS["masked"].replace("ROWS = 33", "ROWS = 8").replace("COLS = 70", "COLS = 16777216")
    graph = trace_problem(problem_of(re.sub(r"return .*", "return x.cumsum(1) * m", text, count=1)))
    schedule = initial_schedule(graph)
    sheet = load_sheet("h200")
    (region,) = apply(graph, schedule, options(graph, schedule, sheet)[0]).regions
    assert region.parameters["algorithm"] == "split"
    total, scan = region_launches(plan_region(graph, region.nodes), region.parameters, sheet)
    assert total.dram_bytes >= 8 * 16777216 * 4
    assert scan.dram_bytes > total.dram_bytes


def test_every_program_of_a_split_scan_holds_what_all_chunks_add_up_to() -> None:
    """More parts of more rows than the registers of a program hold cost more than fewer parts."""
    _, graph = traced_text(function("torch.cumsum(x, 0)", "torch.randn(16384, 64)"), "columns")
    planned = plan_region(graph, initial_schedule(graph).regions[0].nodes)
    start = {**planned.defaults(132), "algorithm": "split", "ROWS": 64, "BLOCK_N": 32, "num_warps": 4}
    few, many = (region_us(planned, {**start, "SPLITS": splits}, load_sheet("h200")) for splits in (128, 512))
    assert few is not None
    assert many is not None
    assert many > 2 * few
