"""Kernels of chunks are what a GPU's compiler takes and what a block's shared memory holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.harness import generated, run_worker, traced_at_all_sizes, write_job
from tests.tools.codegen.loop_samples import LOOPS
from tools.codegen import emit
from tools.codegen.ir.loop import Loop
from tools.codegen.schedule.plan import Planned, plan_region
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet

WIDE = LOOPS["matrix"].replace("DIM = 16", "DIM = 128").replace("STEPS = 20", "STEPS = 64")
SHEET = load_sheet("h200")


def planned_of(text: str) -> Planned:
    """Plan the loop of a sample."""
    graph = traced_at_all_sizes(text, "matrix")[1]
    return plan_region(graph, [next(node.name for node in graph.nodes if isinstance(node, Loop))])


def test_products_from_a_chunks_start_are_read_off_those_between_steps() -> None:
    """No column is scanned by itself: Triton 3.6 ends in an assertion where it lays a column out as wide as a tile."""
    problem, graph = traced_at_all_sizes(LOOPS["matrix"], "matrix")
    source = emit(problem, graph, generated(graph, {})).source
    assert source.count("tl.cumprod(") == 1
    assert "tl.cumprod(tl.where(" in source


def test_stages_that_fill_the_shared_memory_do_not_fit() -> None:
    """What is sent ahead lies in it: 15 chunks of 32 steps of 128 float32 are too many, two are not."""
    planned = planned_of(WIDE)
    few = {"algorithm": "chunked", "CHUNK": 32, "ROWS": 32, "precision": "tf32x3", "num_warps": 4, "num_stages": 3}
    assert planned.template.fits(planned.kernel, few, "num_stages", SHEET)
    assert not planned.template.fits(planned.kernel, {**few, "num_stages": 16}, "num_stages", SHEET)


def test_first_chunks_of_wide_matrices_are_shorter() -> None:
    """A block of an A100 holds what they take."""
    assert planned_of(LOOPS["matrix"]).defaults(132)["CHUNK"] == 64
    assert planned_of(WIDE.replace("DIM = 128", "DIM = 256")).defaults(132)["CHUNK"] == 16


@pytest.mark.slow
def test_first_choices_compile(tmp_path: Path) -> None:
    """Each of them compiles for Hopper and takes no more than a block has."""
    problem, graph = traced_at_all_sizes(WIDE, "matrix")
    sources = [emit(problem, graph, choice.schedule).source for choice in modelled_choices(graph, SHEET, problem.policy, most=3)]
    jobs = [{**write_job(tmp_path, f"wide_{place}", problem, source), "arch": 90} for place, source in enumerate(sources)]
    for result in run_worker("compile_worker.py", jobs, interpret=False):
        assert "crash" not in result, result["crash"]
        assert all(kernel["shared"] <= SHEET.shared_kib_per_block * 1024 for kernel in result["kernels"])
