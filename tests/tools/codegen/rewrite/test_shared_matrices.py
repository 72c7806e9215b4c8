"""Products of batches whose matrices are shared by a part of the batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.harness import run_worker, traced_text, write_job
from tests.tools.codegen.samples import function
from tools.codegen import emit
from tools.cost.library_copies import broadcast_copies_us
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.records import DEFAULT_POLICY

SHARED = {
    "a layer for each feature": ("(x[..., None, :] @ y).squeeze(-2)", "torch.randn(9, 5, 37), torch.randn(5, 37, 11)"),
    "behind two dimensions": ("x[..., None, :] @ y", "torch.randn(3, 4, 5, 37), torch.randn(5, 37, 11)"),
    "of several rows": ("x @ y", "torch.randn(9, 5, 3, 37), torch.randn(1, 5, 37, 11)"),
    "on the left": ("y @ x", "torch.randn(9, 5, 37, 3), torch.randn(5, 11, 37)"),
}


@pytest.mark.parametrize("name", SHARED)
def test_matrices_that_a_batch_shares_are_not_written_out(name: str, tmp_path: Path) -> None:
    """The product is an einsum that reads each matrix as it is, and is right."""
    problem, graph = traced_text(function(*SHARED[name], "x, y"), "shared")
    assert "einsum" in {node.op for node in graph.nodes}
    source = emit(problem, graph, modelled_choices(graph, load_sheet("h100"), DEFAULT_POLICY)[0].schedule).source
    (found,) = run_worker("interpreter_worker.py", [write_job(tmp_path, "shared", problem, source)], interpret=True)
    assert "crash" not in found, found["crash"]
    assert found["error"] <= 1.0


@pytest.mark.parametrize(
    "operands",
    [
        "torch.randn(9, 5, 3, 37), torch.randn(9, 5, 37, 11)",
        "torch.randn(9, 5, 3, 37), torch.randn(37, 11)",
        "torch.randn(9, 3, 37), torch.randn(1, 37, 11)",
    ],
)
def test_other_products_stay_products(operands: str) -> None:
    """Matrices of their own, and one for all, are multiplied as they lie."""
    _, graph = traced_text(function("x @ y", operands, "x, y"))
    assert [node.op for node in graph.nodes] == ["matmul"]
    assert broadcast_copies_us(graph, ["matmul"], load_sheet("h100")) == 0


def test_what_the_library_writes_out_counts() -> None:
    """Keys that four heads share are written out for each: about the time of writing 34 MB and of reading them again."""
    _, graph = traced_text(function("x @ y", "torch.randn(8, 8, 4, 16, 64), torch.randn(8, 8, 1, 64, 512)", "x, y"))
    assert 15 < broadcast_copies_us(graph, ["matmul"], load_sheet("h100")) < 60
