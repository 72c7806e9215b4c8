"""Where the tensors of a sealed call lie: buffers between borders, and what torch allots while the call runs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from tools.evaluation.wire.launch_plan import Buffer
from tools.evaluation.wire.library_calls import View

if TYPE_CHECKING:
    import torch

RED_BYTES = 4096
"""Before and after each buffer."""
_RED = 0xA5


class BreachError(Exception):
    """A kernel wrote outside of its buffers, or its code is not what the plan says."""


class Held:
    """One buffer on the device between two borders of a known pattern."""

    def __init__(self, buffer: Buffer, name: str, device: str) -> None:
        """Make it."""
        import torch

        self.buffer = buffer
        self.name = name
        room = -(-buffer.nbytes // RED_BYTES) * RED_BYTES
        self._whole = torch.full((RED_BYTES + room + RED_BYTES,), _RED, dtype=torch.uint8, device=device)
        self.inside = self._whole[RED_BYTES : RED_BYTES + buffer.nbytes]
        self.address = int(self.inside.data_ptr())

    def getter(self, view: View) -> Callable[[], torch.Tensor]:
        """Make what gives a tensor in it, always the same."""
        made = self._tensor(view)
        return lambda: made

    def _tensor(self, view: View) -> torch.Tensor:
        import torch

        dtype: torch.dtype = getattr(torch, view.dtype)
        item = dtype.itemsize
        whole = self.inside[: self.inside.numel() // item * item].view(dtype)
        return whole.as_strided(view.shape, view.strides, whole.storage_offset() + view.offset // item)

    def is_whole(self) -> bool:
        """Whether both borders hold their pattern."""
        before, after = self._whole[:RED_BYTES], self._whole[RED_BYTES + self.buffer.nbytes :]
        return bool((before == _RED).all()) and bool((after == _RED).all())


class Allotted:
    """What an operator of torch makes, in memory that torch allots: another place at another call, perhaps."""

    def __init__(self, view: View) -> None:
        """Hold nothing yet; `view` is how the plan says that it lies."""
        self._view = view
        self._made: torch.Tensor | None = None
        self._stays = False
        self.address = 0

    def take(self, made: torch.Tensor) -> None:
        """Hold what was made."""
        self._made = made
        self.address = int(made.data_ptr())

    def stay(self) -> None:
        """Hold what is there from call to call: it is a graph's, and each replay writes it anew."""
        self._stays = True

    def let_go(self) -> None:
        """Hold nothing: torch may allot the memory anew."""
        if not self._stays:
            self._made = None

    def getter(self, view: View) -> Callable[[], torch.Tensor]:
        """Make what gives a tensor in it; BreachError where nothing is there."""
        return self._whole if view == self._view else functools.partial(self._part, view)

    def _whole(self) -> torch.Tensor:
        if self._made is None:
            raise BreachError("it reads what is not there yet, or not any more")
        return self._made

    def _part(self, view: View) -> torch.Tensor:
        import torch

        made = self._whole()
        dtype: torch.dtype = getattr(torch, view.dtype)
        place = (made.storage_offset() * made.element_size() + view.offset) // dtype.itemsize
        return torch.empty(0, dtype=dtype, device=made.device).set_(made.untyped_storage(), place, view.shape, view.strides)
