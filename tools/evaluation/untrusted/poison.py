"""Fills memory that a kernel may leave unwritten with a pattern that no honest result holds."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from tools.evaluation.wire.channel import fill_pattern

if TYPE_CHECKING:
    import torch

_M_PERTURB = -6
"""glibc's option that fills every block it hands out with a byte's complement."""

_BLOCKS = 3
"""Blocks poisoned of each output's size: a host function often makes temporaries of that size too."""
_LARGE = 64 << 20
"""From here on the driver is asked, before each call, how much is free: smaller blocks the allocator has at hand after the first."""


def poison(device: str, sizes: list[int], poison_b: bool) -> None:
    """Poison what the next allocations will get: all of them on the CPU, blocks of the outputs' sizes on a GPU."""
    byte = fill_pattern(poison_b)
    if device == "cpu":
        _perturb(byte)
        return
    import torch

    blocks: list[torch.Tensor] = []
    for size in sizes:
        count = _BLOCKS if size < _LARGE else min(_BLOCKS, int(torch.cuda.mem_get_info()[0] * 0.5) // size)
        blocks += [torch.full((size,), byte, dtype=torch.uint8, device=device) for _ in range(count)]


def _perturb(byte: int) -> None:
    # 0xFF would be the complement of 0, which switches the option off: 0xFE gives large negative floats instead
    try:
        ctypes.CDLL(None).mallopt(_M_PERTURB, (byte ^ 0xFF) or 0x01)
    except AttributeError:
        # another C library: the two runs still differ in what the outputs' own memory held
        return
