"""Complex tensors as real ones: both parts of each element side by side, so that what is known of floats holds for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

NAMES = ("complex64",)
"""By torch's names."""


def in_parts(value: torch.Tensor) -> torch.Tensor:
    """Give a complex tensor [..., n] as a real one [..., 2n], so that rows stay rows; one number as [2]; other tensors as they are."""
    import torch

    if not value.is_complex():
        return value
    pairs = torch.view_as_real(value.resolve_conj())
    return pairs.flatten(-2) if value.dim() else pairs


def is_inexact(value: Any) -> bool:
    """Whether it is a tensor of floats or of complex numbers."""
    import torch

    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def changed(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Change a float tensor, or each part of a complex one by itself; give all else as it is."""
    import torch

    if not is_inexact(value):
        return value
    if not value.is_complex():
        return change(value)
    return torch.complex(change(value.real.contiguous()), change(value.imag.contiguous()))


def converted(value: Any, dtype: torch.dtype) -> Any:
    """Give a float tensor in `dtype`; a complex one has no shorter format than its own, and a longer one where floats become float64."""
    import torch

    if isinstance(value, torch.Tensor) and value.is_complex():
        return value.to(torch.complex128) if dtype == torch.float64 else value
    return value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def convert_module(module: torch.nn.Module, dtype: torch.dtype) -> torch.nn.Module:
    """Convert a module's tensors as `module.to` does, which would leave a complex one its real part alone."""
    made: torch.nn.Module = module._apply(lambda value: converted(value, dtype))  # type: ignore[no-untyped-call]
    return made
