"""What a reference asks to be computed in float32 is computed in float64, and what it rounds to half precision is rounded, in float64."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

_SCALED = {
    "aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default": False,
    "aten.fake_quantize_per_channel_affine_cachemask.default": True,
}
"""Operators that refuse a scale in float64, and whether their fourth argument is an axis."""


def _quantised(x: Any, scale: Any, zero: Any, axis: int | None, low: int, high: int) -> tuple[Any, Any]:
    """Round to a grid and clamp, in float64: the values, and which of them were not clamped.

    What is no number is the least of the grid. With an axis, zero points are added to whole numbers of 64 bits, which wrap around.
    """
    import torch

    if axis is not None:
        scale, zero = (each.view([-1 if place == axis % x.dim() else 1 for place in range(x.dim())]) for each in (scale, zero))
    rounded = (x * scale.reciprocal()).round()
    steps = rounded + zero
    bounded = steps.masked_fill(steps.isnan(), low)
    if axis is not None:
        least, largest = torch.where(zero < 0, high, low), torch.where(zero > 0, low, high)
        bounded = torch.where(rounded >= 2.0**63, largest, torch.where(rounded > -(2.0**63), steps, least))
    return (bounded.clamp(low, high) - zero) * scale, (steps >= low) & (steps <= high)


def widened_casts() -> AbstractContextManager[object]:
    """Make a context in which `.float()`, `dtype=torch.float32` and the like give float64.

    A cast to float16 or bfloat16 is a step of the reference's own: it rounds, overflows where that does, and gives float64 again, so
    that it can meet parameters in float64. Casts to float8 and integers, and views of bits, stay as they are.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    halves, wide = (torch.float16, torch.bfloat16), {torch.float32: torch.float64, torch.complex64: torch.complex128}

    class _Widened(TorchDispatchMode):  # type: ignore[no-untyped-call]
        # `torch.cond` and its like run as they are, without a look inside
        supports_higher_order_operators = True

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            given = kwargs or {}
            if (axis := _SCALED.get(str(func))) is not None and args[1].dtype is torch.float64:
                x, scale, zero, fourth, low, high = args
                made, kept = _quantised(x, scale, zero, fourth if axis else None, low, high)
                # without an axis the fourth says whether anything is rounded at all
                return (made, kept) if axis or bool(fourth.all()) else (x.clone(), torch.ones_like(kept))
            asked = given.get("dtype")
            if asked in wide:
                return func(*args, **(given | {"dtype": wide[asked]}))
            found = func(*args, **given)
            return found.double() if asked in halves and isinstance(found, torch.Tensor) else found

    mode: AbstractContextManager[object] = _Widened()  # type: ignore[no-untyped-call]
    return mode
