"""How what is taken as one whole lies in memory, as it is recorded without a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch.nn import functional

from tools.evaluation.untrusted import composites


class Listener:
    """Keeps nothing."""

    def composed(self, operator: Any, args: Sequence[Any], kwargs: dict[str, Any], make: Callable[[], Any]) -> Any:
        """Give what is made."""
        return make()


@pytest.mark.parametrize(
    ("dtype", "by_position", "masked", "strides"),
    [
        (torch.float16, False, False, (256, 128, 8, 1)),
        (torch.bfloat16, True, False, (256, 8, 16, 1)),
        (torch.float16, False, True, (256, 8, 16, 1)),
        (torch.float32, False, False, (256, 8, 16, 1)),
    ],
    ids=["halves", "halves by position", "masked", "float32"],
)
def test_what_attention_makes_lies_as_the_device_lays_it(
    dtype: torch.dtype, by_position: bool, masked: bool, strides: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of halves without a mask as the queries lie; else with all heads of a position together, where a device has a fused kernel."""
    monkeypatch.setattr(composites, "_is_fused", lambda *tensors: True)
    x = torch.randn(3, 2, 16, 8, dtype=dtype)
    query = x.transpose(1, 2).contiguous().transpose(1, 2) if by_position else x
    given = [torch.zeros(16, 16, dtype=dtype)] if masked else []
    operator = torch.ops.aten.scaled_dot_product_attention.default
    made = composites._attention(Listener(), functional.scaled_dot_product_attention, operator, query, x, x, *given)
    assert made.stride() == strides
