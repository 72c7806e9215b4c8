"""Sizes that would hide from Triton how rows are aligned are constants of their kernels."""

from __future__ import annotations

import pytest

from tests.tools.codegen.harness import generated, traced_text
from tests.tools.codegen.samples import function
from tools.codegen import emit


def rows_of(size: int, body: str = "torch.softmax(x, -1)") -> str:
    """Write a kernel over rows of a size that varies."""
    problem, graph = traced_text(f"{function(body, f'torch.randn(256, {size})')}\nSMALL_SIZES = [{{'ROWS': 7}}]\n")
    return emit(problem, graph, generated(graph, {})).source


@pytest.mark.parametrize("size", [8, 24, 1000])
def test_a_row_that_16_does_not_divide_is_read_wide(size: int) -> None:
    """Of a number Triton knows whether 16 divides it: of others it sees what they are divided by where they are constants."""
    assert "n_cols: tl.constexpr" in rows_of(size)


@pytest.mark.parametrize("size", [64, 1024, 999])
def test_other_rows_have_any_length(size: int) -> None:
    """Nothing is gained where 16 divides a row, nor where two does not."""
    assert "n_cols: tl.constexpr" not in rows_of(size)
