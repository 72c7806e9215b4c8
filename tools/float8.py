"""float8 tensors as tensors that torch can compute with: it stores and converts float8, and has few operators for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

NAMES = ("float8_e4m3fn", "float8_e5m2")
"""By torch's names."""


def is_float8(dtype: torch.dtype) -> bool:
    """Whether a dtype is one of them."""
    return str(dtype).removeprefix("torch.") in NAMES


def widened(value: torch.Tensor) -> torch.Tensor:
    """Give a float8 tensor's values in float32, exactly; every other tensor as it is."""
    return value.float() if is_float8(value.dtype) else value


def narrowed(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Convert to `dtype`; of float8 what is out of range becomes its largest number, whatever the version of torch makes of it."""
    import torch

    if not is_float8(dtype):
        return value.to(dtype)
    largest = torch.finfo(dtype).max
    return value.clamp(-largest, largest).to(dtype)


def writable(value: torch.Tensor) -> torch.Tensor:
    """View a float8 tensor as its bytes, which every operator that only moves elements takes; every other tensor as it is."""
    import torch

    return value.view(torch.uint8) if is_float8(value.dtype) else value


def magnitude(value: torch.Tensor) -> torch.Tensor:
    """Give absolute values in the tensor's own dtype; a GPU has no operator for those of float8."""
    return widened(value).abs().to(value.dtype)
