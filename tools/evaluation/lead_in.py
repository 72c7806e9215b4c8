"""What stands before a timed call on the device's queue: the L2 is cleared, and for a primed call the host gets a head start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.records import HardwareSheet

if TYPE_CHECKING:
    import torch

HEAD_START_CYCLES = 2_000_000
"""About 1 ms at the clocks of the known devices: longer than Python takes to issue the launches of an operator."""


def flush_bytes(sheet: HardwareSheet) -> int:
    """Bytes to overwrite so that nothing a call needs is left in the L2: twice its size."""
    return int(2 * sheet.l2_mib * 1024 * 1024)


def lead_in(flush: torch.Tensor | None, primed: bool) -> None:
    """Wait for what is queued, keep the device spinning where the call is primed, then overwrite `flush` (at least twice the L2)."""
    import torch

    torch.cuda.synchronize()
    if primed:
        # PyTorch's own benchmarks and tests use it; there is no public form
        torch.cuda._sleep(HEAD_START_CYCLES)  # type: ignore[no-untyped-call]
    if flush is not None:
        flush.zero_()
