"""What stands before a timed call on the device's queue: the L2 is cleared, and for a primed call the host gets a head start."""

from __future__ import annotations

import ctypes
from functools import cache

from tools.records import HardwareSheet

_PERSISTING_L2 = 6  # CU_LIMIT_PERSISTING_L2_CACHE_SIZE

HEAD_START_CYCLES = 2_000_000
"""About 1 ms at the clocks of the known devices: longer than Python takes to issue the launches of an operator."""
_ROW = 4096
"""Floats that one block sums: no partial sums, so no memory of the allocator's that a poisoned output might get."""


def flush_bytes(sheet: HardwareSheet) -> int:
    """Bytes to read so that nothing a call needs is left in the L2: twice its size."""
    return int(2 * sheet.l2_mib * 1024 * 1024)


class ColdCache:
    """Clears the L2 by reading a buffer.

    Overwriting one would clear it too, but leave it full of dirty lines, which a kernel that mostly reads has to drive out while it is
    timed: 7 to 9 µs on an H200.
    """

    def __init__(self, nbytes: int, device: str = "cuda") -> None:
        """Hold a buffer of at least `nbytes` on `device`."""
        import torch

        self._filler = torch.zeros(-(-nbytes // (4 * _ROW)), _ROW, device=device)
        self._sums = torch.empty(len(self._filler), device=device)

    def clear(self) -> None:
        """Read all of it, on the device's queue."""
        import torch

        torch.sum(self._filler, dim=1, out=self._sums)


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


def lead_in(cold: ColdCache | None, primed: bool) -> None:
    """Wait for what is queued, keep the device spinning where the call is primed, then clear its L2.

    Nothing persists in the L2 from the call before.
    """
    import torch

    torch.cuda.synchronize()
    end_persistence()
    if primed:
        # PyTorch's own benchmarks and tests use it; there is no public form
        torch.cuda._sleep(HEAD_START_CYCLES)  # type: ignore[no-untyped-call]
    if cold is not None:
        cold.clear()
