"""Patches that do not overlap are views of their image, copied once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.harness import generated, run_worker, traced_text, write_job
from tests.tools.codegen.samples import function
from tools.codegen import emit, limits

PATCHES = function("F.unfold(x, (2, 3), stride=(2, 3)).transpose(1, 2) @ y + 1", "torch.randn(2, 3, 8, 12), torch.randn(18, 20)", "x, y")


def test_patches_side_by_side_are_a_view_and_a_copy() -> None:
    """Nothing of it is left to the library."""
    _, graph = traced_text(PATCHES)
    assert not limits(graph)
    assert {node.op for node in graph.nodes} == {"reshape", "permute", "contiguous", "transpose", "matmul", "add"}


@pytest.mark.parametrize("how", ["2, stride=1", "2, stride=2, padding=1", "(2, 2), stride=(2, 3)", "3, stride=3"])
def test_patches_that_overlap_or_leave_something_out_are_no_view(how: str) -> None:
    """Of an image of 8 by 10: padded, with gaps, or with an edge that fills no patch."""
    _, graph = traced_text(function(f"F.unfold(x, {how}) * 2", "torch.randn(2, 3, 8, 10)"))
    assert "im2col" in {node.op for node in graph.nodes}


def test_a_product_of_patches_gives_the_references_results(tmp_path: Path) -> None:
    """It is as accurate as the reference."""
    problem, graph = traced_text(PATCHES)
    job = write_job(tmp_path, "patches", problem, emit(problem, graph, generated(graph, {})).source)
    (result,) = run_worker("interpreter_worker.py", [job], interpret=True)
    assert "crash" not in result, result["crash"]
    assert result["error"] <= 1.0
