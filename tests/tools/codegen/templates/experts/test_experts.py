"""Rows sent to experts give what the loop over experts gives, by kernels that never wait for the device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.breadth import covering, unlike
from tests.tools.codegen.dispatch_samples import FORMS, PLAIN, ROUTES, STACKED
from tests.tools.codegen.harness import made_once, problem_of, run_worker, traced_text, unseen, write_job
from tools.codegen import emit, initial_schedule
from tools.codegen.ir.dispatch import Dispatch
from tools.codegen.ir.schedule import Schedule
from tools.codegen.schedule.cuda_graph import can_capture
from tools.codegen.schedule.plan import plan_region
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.records import DEFAULT_POLICY

SAMPLES = {**FORMS, **ROUTES}
ALIKE = {"viewed", "one_each", *((name, "library") for name in SAMPLES if name not in ("stacked", "sent"))}
"""Cases that run no line of the generator which none of the others runs: tried by `make test-all`."""
CASES = covering(unlike([(name, by) for name in SAMPLES for by in ("generated", "library")], ALIKE))
RUN = dict.fromkeys([*CASES, *((name, "generated") for name, _ in CASES)])
SMALL = {"BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 16, "num_stages": 1}
SHEET = load_sheet("h200")


def schedule_of(text: str, **changed: Any) -> Schedule:
    """Generate the experts and leave the rest to the library."""
    graph = traced_text(text)[1]
    regions = []
    for region in initial_schedule(graph).regions:
        if isinstance(graph.by_name[region.nodes[0]], Dispatch):
            parameters = {**plan_region(graph, region.nodes).defaults(132), **changed}
            regions.append(region.model_copy(update={"template": "experts", "parameters": parameters}))
        else:
            regions.append(region)
    return Schedule(regions=tuple(regions))


def source_of(text: str, **changed: Any) -> str:
    """Write a sample."""
    problem, graph = traced_text(text)
    return emit(problem, graph, schedule_of(text, **changed)).source


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    """Run all samples at sizes they were not traced at: generated, and left to the library."""
    return made_once(tmp_path_factory, "experts", _results)


def _results(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    jobs: dict[tuple[str, str], dict[str, str]] = {}
    for name in dict.fromkeys(name for name, _ in RUN):
        text = SAMPLES[name]
        problem, graph = traced_text(text)
        other = unseen(text.replace("TOKENS = 11", "TOKENS = 13"))
        jobs[name, "generated"] = write_job(folder, name, other, source_of(text, **(SMALL if name in ROUTES else {})))
        if (name, "library") in CASES:
            left = emit(problem, graph, initial_schedule(graph)).source
            jobs[name, "library"] = write_job(folder, f"{name}_library", other, left)
    return dict(zip(jobs, run_worker("interpreter_worker.py", list(jobs.values()), interpret=True), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "by"), RUN)
def test_each_form_gives_what_its_loop_gives(results: Any, name: str, by: str) -> None:
    """Experts without rows, all rows with one expert, numbers of no expert, one expert a row, halves: all match float64."""
    found = results[name, by]
    assert "crash" not in found, found["crash"]
    assert found["error"] <= 1.0


@pytest.mark.slow
def test_experts_compile(tmp_path: Path) -> None:
    """Kernels of weights in tensors of their own, and in one tensor, compile for Hopper."""
    texts = {"halves": ROUTES["halves"], "stacked": STACKED}
    jobs = [{**write_job(tmp_path, name, problem_of(text), source_of(text)), "arch": 90} for name, text in texts.items()]
    for result in run_worker("compile_worker.py", jobs, interpret=False):
        assert "crash" not in result, result["crash"]


def test_weights_stay_where_they_are() -> None:
    """Tensors of their own are found by their addresses, one tensor by its base: nothing is stacked or copied."""
    apart, together = source_of(PLAIN), source_of(STACKED)
    assert "tl.load(table_ptr + 0 * EXPERTS + expert).to(tl.pointer_type(tl.float32))" in apart
    assert "experts_table_kernel[(1,)](*weights, table, num_warps=1)" in apart
    assert "pack_weights" not in apart
    assert "table_ptr" not in together
    assert "torch.stack" not in apart + together


def test_gate_and_up_are_one_launch() -> None:
    """Products of one operand share its loads and what follows them: two stages for three products."""
    for text in (PLAIN, STACKED):
        kernels = [line for line in source_of(text).split("\n") if line.startswith("def experts") and "stage" in line]
        assert len(kernels) == 2
    assert source_of(PLAIN).count("tl.dot") == 3


def test_only_generated_experts_are_captured() -> None:
    """The loop of the library waits for the device, which no graph can hold; the kernels do not."""
    graph = traced_text(PLAIN)[1]
    assert not can_capture(graph, initial_schedule(graph))
    choices = modelled_choices(graph, SHEET, DEFAULT_POLICY)
    assert any(region.template == "experts" for region in choices[0].schedule.regions)
