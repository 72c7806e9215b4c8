"""A loop shares its kernel with reductions along what its steps hold, before it and after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.harness import generated, run_worker, traced_text, write_job
from tools.codegen import LoweringError, emit, initial_schedule
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.plan import plan_region

BISECTED = """import torch

ROWS = 9
COLS = 40
SMALL_SIZES = [{"ROWS": 3, "COLS": 7}]


def bisected(x):
    x = x / 2
    top = x.amax(-1, keepdim=True)
    low, high = top - 1, top
    for _ in range(24):
        middle = (low + high) / 2
        over = torch.relu(x - middle).square().sum(-1, keepdim=True) >= 1
        low, high = torch.where(over, middle, low), torch.where(over, high, middle)
    shares = torch.relu(x - (low + high) / 2).square()
    return shares / shares.sum(-1, keepdim=True)


def example_inputs():
    return (torch.randn(ROWS, COLS),)
"""


def test_a_search_in_rows_is_one_region() -> None:
    """The largest element that a search begins with, and the shares that it ends with, are made where its rows are held."""
    graph = traced_text(BISECTED, "bisected")[1]
    assert len(initial_schedule(graph).regions) == 1


def test_a_search_in_rows_is_right(tmp_path: Path) -> None:
    """Its kernel is as accurate as the reference within a factor of four, at both sizes."""
    problem, graph = traced_text(BISECTED, "bisected")
    job = write_job(tmp_path, "bisected", problem, emit(problem, graph, generated(graph, {})).source)
    assert run_worker("interpreter_worker.py", [job], interpret=True)[0]["error"] <= 1.0


def test_a_search_begins_at_what_is_no_number(tmp_path: Path) -> None:
    """The largest element of a row with NaN is NaN, and so is all that is searched for from there; other rows are as they were."""
    spoilt = "torch.randn(ROWS, COLS).masked_fill(torch.arange(COLS) == torch.arange(ROWS)[:, None] * 2, float('nan'))"
    text = BISECTED.replace("return shares / shares.sum(-1, keepdim=True)", "return shares, high").replace(
        "torch.randn(ROWS, COLS)", spoilt
    )
    problem, graph = traced_text(text.replace('"ROWS": 3', '"ROWS": 5'), "spoilt")
    schedule = generated(graph, {})
    assert [region.template for region in schedule.regions] == ["recurrence"]
    job = write_job(tmp_path, "spoilt", problem, emit(problem, graph, schedule).source)
    assert run_worker("interpreter_worker.py", [job], interpret=True)[0]["error"] <= 1.0


def test_a_norm_of_each_step_is_a_kernel_of_its_own() -> None:
    """What is reduced for each step alone is made for all steps at once, by rows."""
    text = BISECTED.replace("x = x / 2", "x = x / x.norm(dim=-1, keepdim=True)").replace(
        "torch.relu(x - middle)", "torch.relu(x - middle + x[:1])"
    )
    steps = text.replace("for _ in range(24):", "for t in range(x.shape[0]):").replace("x[:1]", "x[t : t + 1].exp()")
    graph = traced_text(steps, "steps")[1]
    assert len(initial_schedule(graph).regions) > 1


def test_a_product_beside_a_loop_is_a_kernel_of_its_own() -> None:
    """Tiles of a product are none of a loop's, whichever of the two comes first."""
    multiplied = BISECTED.replace("def bisected(x)", "def bisected(x, y, w)").replace(
        "return shares / shares.sum(-1, keepdim=True)", "return shares / shares.sum(-1, keepdim=True) * (y @ w)"
    )
    text = multiplied.replace("(torch.randn(ROWS, COLS),)", "torch.randn(ROWS, COLS), torch.randn(ROWS, 5), torch.randn(5, COLS)")
    graph = traced_text(text, "multiplied")[1]
    with pytest.raises(LoweringError, match="a loop shares its kernel with pointwise operators and reductions only"):
        plan_region(graph, [node.name for node in graph.nodes if not is_view(node)])
