"""Tensors as their bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_PIECE = 1 << 25
"""Elements compared at once: the answer to each takes a byte."""


def same_bytes(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of one shape and dtype hold the same bits, NaN or not."""
    import torch

    a, b = as_bytes(one), as_bytes(other)
    if all(value.numel() % 8 == value.storage_offset() % 8 == 0 for value in (a, b)):
        a, b = a.view(torch.int64), b.view(torch.int64)
    return all(torch.equal(a[start : start + _PIECE], b[start : start + _PIECE]) for start in range(0, a.numel(), _PIECE))


def as_bytes(value: torch.Tensor) -> torch.Tensor:
    """View a tensor's elements in order as bytes; a copy where they do not lie in order, or are read as others than lie there."""
    import torch

    flat = value.resolve_conj().resolve_neg().reshape(-1).contiguous()
    # the only element of a slice may have any stride
    return flat.as_strided(flat.shape, (1,)).view(torch.uint8)
