"""Whole numbers of 64 bits are made in 32 where nothing is lost by it."""

from __future__ import annotations

import pytest

from tests.tools.codegen.harness import generated, traced_at_all_sizes
from tests.tools.codegen.samples import function
from tools.codegen import emit

ARANGE = "torch.arange({}, device=x.device)"
FIXED, VARYING = ARANGE.format("4"), ARANGE.format("x.shape[1]")


def written(body: str, inputs: str = "torch.randn(ROWS, 4)", arguments: str = "x") -> str:
    """Write a reference's kernels."""
    problem, graph = traced_at_all_sizes(function(body, inputs, arguments))
    return emit(problem, graph, generated(graph, {})).source


@pytest.mark.parametrize("body", [f"x * (({FIXED} + 1) % 4 < 2)", f"x * ({FIXED} * 5 // 3).float()"])
def test_positions_of_a_fixed_dimension_stay_short(body: str) -> None:
    """What is made of a position below a size that never varies is compared, or made a float, without 64 bits."""
    assert "int64" not in written(body)


@pytest.mark.parametrize("body", [f"x * ({FIXED} * 2**30 > 5)", f"x.long() + {FIXED} * 3"])
def test_what_may_be_large_stays_long(body: str) -> None:
    """A product that 32 bits do not hold, and results of 64 bits, are made in 64."""
    assert "int64" in written(body)


def test_a_remainder_of_positions_asks_for_no_sign() -> None:
    """A remainder of what is never negative is that of the machine."""
    assert "tl.where" not in written(f"x * (({FIXED} + 1) % 3).float()")


def test_sums_that_are_cut_to_short_numbers_are_made_short() -> None:
    """The upper half of a sum of whole numbers says nothing of the lower: bits are packed in 32."""
    bits = f"((x > 0).int() << {FIXED}.int()).sum(-1)"
    assert "program_id" in written(f"{bits}.to(torch.uint8)").split("tl.int64")[-2]
    assert "lshift" in written(bits).split("tl.int64")[-2].splitlines()[-1]
