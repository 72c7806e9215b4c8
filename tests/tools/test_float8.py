"""float8 tensors."""

from __future__ import annotations

import pytest
import torch

from tools.float8 import narrowed, widened, writable

DTYPES = [torch.float8_e4m3fn, torch.float8_e5m2]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_widening_and_narrowing_keep_every_number(dtype: torch.dtype) -> None:
    """Every number of a format comes back from float32; NaN stays NaN."""
    numbers = torch.arange(256).to(torch.uint8).view(dtype)
    wide = widened(numbers)
    assert wide.dtype == torch.float32
    again = narrowed(wide, dtype).float()
    assert (again == wide)[wide.isfinite()].all()
    assert torch.equal(again.isnan(), wide.isnan())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_what_is_out_of_range_becomes_the_largest_number(dtype: torch.dtype) -> None:
    """No infinity and no NaN is made by narrowing, in no version of torch."""
    largest = torch.finfo(dtype).max
    assert narrowed(torch.tensor([1e9, -torch.inf]), dtype).float().tolist() == [largest, -largest]


def test_other_tensors_are_left_alone() -> None:
    """Tensors of other dtypes are given back as they are."""
    value = torch.ones(3)
    assert widened(value) is value
    assert writable(value) is value
    assert torch.equal(narrowed(value, torch.bfloat16), value.bfloat16())
