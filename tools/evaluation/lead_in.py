"""What stands before a timed call on the device's queue: the L2 is cleared, and for a primed call the host gets a head start."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING

from tools.records import HardwareSheet

if TYPE_CHECKING:
    import torch

_PERSISTING_L2 = 6  # CU_LIMIT_PERSISTING_L2_CACHE_SIZE

HEAD_START_CYCLES = 2_000_000
"""About 1 ms at the clocks of the known devices: longer than Python takes to issue the launches of an operator."""


def flush_bytes(sheet: HardwareSheet) -> int:
    """Bytes to overwrite so that nothing a call needs is left in the L2: twice its size."""
    return int(2 * sheet.l2_mib * 1024 * 1024)


@cache
def _driver(library: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(library)
    except OSError:
        return None


def end_persistence(library: str = "libcuda.so.1") -> bool:
    """Take lines that an earlier call had the L2 keep out of its protection, and the share of L2 for them away.

    They would survive the clearing. False where the driver cannot be asked; a device without such a share has nothing to give up.
    """
    driver = _driver(library)
    if driver is None:
        return False
    # a device that is too old says that it does not know the limit
    driver.cuCtxSetLimit(_PERSISTING_L2, ctypes.c_size_t(0))
    return bool(driver.cuCtxResetPersistingL2Cache() == 0)


def lead_in(flush: torch.Tensor | None, primed: bool) -> None:
    """Wait for what is queued, keep the device spinning where the call is primed, then overwrite `flush` (at least twice the L2).

    Nothing persists in the L2 from the call before.
    """
    import torch

    torch.cuda.synchronize()
    end_persistence()
    if primed:
        # PyTorch's own benchmarks and tests use it; there is no public form
        torch.cuda._sleep(HEAD_START_CYCLES)  # type: ignore[no-untyped-call]
    if flush is not None:
        flush.zero_()
