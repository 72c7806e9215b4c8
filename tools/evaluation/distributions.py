"""The battery of input distributions: each keeps shapes and dtypes and changes only the contents of float inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

AS_MADE = "as made"
"""What the problem's own input maker gives."""


def _offset(value: torch.Tensor) -> torch.Tensor:
    # half-precision formats have no digits left to cancel at 1000
    return value + (1000.0 if value.element_size() >= 4 else 8.0)


def _constant_rows(value: torch.Tensor) -> torch.Tensor:
    return value[..., :1].expand_as(value).contiguous() if value.dim() and value.shape[-1] else value


def _sparse(value: torch.Tensor) -> torch.Tensor:
    import torch

    return value * (torch.rand(value.shape, device=value.device) < 0.05).to(value.dtype)


def _heavy_tail(value: torch.Tensor) -> torch.Tensor:
    import torch

    return value * torch.exp(torch.randn(value.shape, device=value.device).clamp(-4, 4)).to(value.dtype)


def _sorted(value: torch.Tensor) -> torch.Tensor:
    return value.sort(dim=-1).values if value.dim() else value


def _shifted_sign(value: torch.Tensor) -> torch.Tensor:
    return -value


BATTERY: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "times 64": lambda value: value * 64,
    "times 0.01": lambda value: value * 0.01,
    "offset": _offset,
    "heavy tail": _heavy_tail,
    "negated": _shifted_sign,
    "small integers": lambda value: (value * 4).round(),
    "sparse": _sparse,
    "sorted rows": _sorted,
    "constant rows": _constant_rows,
}
"""By name, in the order they are tried; what the reference raises on, or answers with NaN or infinity, is left out."""

TIES = ("small integers", "sparse", "constant rows")
"""Distributions that make equal elements: the index of a maximum is then a matter of taste, so integer outputs skip them."""


def transform(name: str, values: list[Any]) -> list[Any]:
    """Apply a distribution to every float tensor among `values`; the caller has seeded torch."""
    import torch

    if name == AS_MADE:
        return values
    change = BATTERY[name]
    return [change(v) if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in values]
