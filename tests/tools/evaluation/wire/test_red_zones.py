"""Inputs between painted zones."""

from __future__ import annotations

import pytest
import torch

from tools.evaluation.wire.red_zones import ZONE_BYTES, Flanked
from tools.records import TensorSpec

SPEC = TensorSpec(name="x", shape=(3, 7), dtype="float32")


@pytest.mark.parametrize(("shifted", "odd"), [(False, 0), (True, 4)])
def test_input_begins_where_it_should(shifted: bool, odd: int) -> None:
    """An input is aligned as an allocator aligns, or begins one element later, and is contiguous in both cases."""
    made = Flanked(SPEC, "cpu").place(shifted=shifted)

    assert made.data_ptr() % 64 == odd
    assert made.is_contiguous()
    assert made.shape == (3, 7)


@pytest.mark.parametrize("place", [-1, 21])
def test_one_element_beyond_is_seen(place: int) -> None:
    """A store right before or behind the input changes what is compared; one inside does not."""
    flanked = Flanked(SPEC, "cpu")
    inside = flanked.place(shifted=True)
    flanked.paint(0x7F)
    found = torch.empty(2 * ZONE_BYTES, dtype=torch.uint8)
    inside.fill_(1.0)
    flanked.copy_to(found)
    assert (found == 0x7F).all()

    inside.as_strided((1,), (1,), inside.storage_offset() + place).fill_(1.0)
    flanked.copy_to(found)

    assert (found != 0x7F).sum() == 4
