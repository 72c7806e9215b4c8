"""Inputs between red zones: memory that belongs to nobody, painted before a call, which no kernel has any business in.

What is written there is found; what is read from there is NaN in one run and a large number in another, so that an answer made of it
cannot pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.records import ITEM_BYTES, TensorSpec

if TYPE_CHECKING:
    import torch

ZONE_BYTES = 4096
"""Before and after each input: a multiple of every alignment that an allocator gives."""


class Flanked:
    """One input and its two zones in one allocation."""

    def __init__(self, spec: TensorSpec, device: str) -> None:
        """Make room on `device`, for an input that begins where the allocator would have it or one element later."""
        import torch

        self._spec = spec
        item = ITEM_BYTES[spec.dtype]
        self._whole = torch.empty(ZONE_BYTES + spec.nbytes + item + ZONE_BYTES, dtype=torch.uint8, device=device)
        self._start = ZONE_BYTES

    def place(self, *, shifted: bool) -> torch.Tensor:
        """Give the input, `shifted` one element later than its alignment asks for."""
        import torch

        dtype: torch.dtype = getattr(torch, self._spec.dtype)
        self._start = ZONE_BYTES + (ITEM_BYTES[self._spec.dtype] if shifted else 0)
        return self._whole[self._start : self._start + self._spec.nbytes].view(dtype).view(self._spec.shape)

    def paint(self, byte: int) -> None:
        """Fill both zones."""
        for zone in self._zones():
            zone.fill_(byte)

    def copy_to(self, target: torch.Tensor) -> None:
        """Write both zones, one after the other, as they are now."""
        import torch

        target.copy_(torch.cat(self._zones()))

    def _zones(self) -> tuple[torch.Tensor, torch.Tensor]:
        end = self._start + self._spec.nbytes
        return self._whole[self._start - ZONE_BYTES : self._start], self._whole[end : end + ZONE_BYTES]
