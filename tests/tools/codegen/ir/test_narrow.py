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


def test_differences_of_positions_stay_short_whatever_the_size() -> None:
    """A tensor has fewer than 2 ** 31 elements: positions of a dimension that varies, and differences of them, are made in 32 bits."""
    inputs = "torch.randn(ROWS, COLS)"
    assert "sub = cols - 5" in written(f"x * ({VARYING} - 5 >= 0)", inputs)
    assert "cols.to(tl.int64) * 3" in written(f"x * ({VARYING} * 3 > 5)", inputs)


def test_a_remainder_of_positions_asks_for_no_sign() -> None:
    """A remainder of what is never negative is that of the machine."""
    assert "tl.where" not in written(f"x * (({FIXED} + 1) % 3).float()")


def test_short_numbers_that_stay_within_their_dtype_are_left_as_they_are() -> None:
    """Taking packed numbers apart is not cut to 8 bits after each step; a sum of them is."""
    inputs = "torch.randint(0, 256, (ROWS, COLS)).byte()"
    assert "tl.uint8" not in written("((x >> 4) & 15).float() - (x & 15).clamp(max=7).float()", inputs)
    assert written("(x + x).float()", inputs).count(".to(tl.uint8)") == 1


def test_sums_that_are_cut_to_short_numbers_are_made_short() -> None:
    """The upper half of a sum of whole numbers says nothing of the lower: bits are packed in 32."""
    bits = f"((x > 0).int() << {FIXED}.int()).sum(-1)"
    assert "program_id" in written(f"{bits}.to(torch.uint8)").split("tl.int64")[-2]
    assert "lshift" in written(bits).split("tl.int64")[-2].splitlines()[-1]


@pytest.mark.parametrize(("mask", "step", "long"), [(15, 4, False), (2**33 - 1, 4, True), (15, 16, True)])
def test_bits_of_a_word_are_taken_in_32(mask: int, step: int, long: bool) -> None:
    """Shifts are counted in 64 bits: those of a word of 32 by less than 32, and less a mask, are the same in 32."""
    body = f"((x[..., None] >> ({FIXED} * {step})) & {mask}).float()"
    assert ("int64" in written(body, "torch.randint(-9, 9, (ROWS, 4), dtype=torch.int32)")) is long
