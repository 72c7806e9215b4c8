"""The gate on a device's queue: what is issued behind it runs only when a number in shared memory says so.

CUDA's stream memory operations (driver API, "Stream Memory Operations") on host memory that the device can see.
"""

from __future__ import annotations

import ctypes
import time
from typing import TYPE_CHECKING, Any, Protocol

from tools.evaluation.wire.chain_board import BOARD_BYTES, VALUES_BYTES, ChainBoard, Word
from tools.evaluation.wire.driver_api import Driver, DriverError

if TYPE_CHECKING:
    import torch

_PORTABLE_AND_MAPPED = 3  # CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP
_AT_LEAST = 0  # CU_STREAM_WAIT_VALUE_GEQ
_PAUSE_S = 2e-5


class Gate(Protocol):
    """What stands before and after a chain of calls."""

    values: torch.Tensor
    """Bytes: the new values of the inputs' elements, once the gate is open."""

    def hold(self, sequence: int) -> None:
        """Let nothing run that is issued from now on, until the gate opens."""

    def reveal(self) -> None:
        """Bring the values to the device, behind the gate."""

    def flag(self, sequence: int) -> None:
        """Say that all before has ended."""

    def close(self) -> None:
        """Give the board's memory back."""


class HostGate:
    """Where the host computes: calls run as they are made, so none can be held."""

    def __init__(self, board: ChainBoard) -> None:
        """Stand before the `board`."""
        import torch

        self._board = board
        self.values = torch.from_numpy(board.values)

    def hold(self, sequence: int) -> None:
        """Refuse."""
        raise DriverError("calls on the host run as they are made")

    def reveal(self) -> None:
        """Do nothing: they are there."""

    def flag(self, sequence: int) -> None:
        """Set it."""
        self._board.set(Word.FLAG, sequence)

    def close(self) -> None:
        """Do nothing."""


class StreamGate:
    """On one stream of the current device."""

    def __init__(self, board: ChainBoard, stream: int = 0, driver: Driver | None = None) -> None:
        """Make the `board` visible to the device; raises DriverError where it cannot be, or has no such operations."""
        import torch

        self.values = torch.empty(VALUES_BYTES, dtype=torch.uint8, device="cuda")
        self._driver = driver or Driver()
        self._stream = ctypes.c_void_p(stream)
        self._host = board.memory.bytes_at(0, BOARD_BYTES).ctypes.data
        self._source = ctypes.c_void_p(board.values.ctypes.data)
        self._driver.ask("cuMemHostRegister_v2", ctypes.c_void_p(self._host), ctypes.c_size_t(BOARD_BYTES), _PORTABLE_AND_MAPPED)
        seen = ctypes.c_uint64()
        self._driver.ask("cuMemHostGetDevicePointer_v2", ctypes.byref(seen), ctypes.c_void_p(self._host), 0)
        self._seen = seen.value

    def hold(self, sequence: int) -> None:
        """Let nothing run that is issued from now on, until the gate opens."""
        self._ask("cuStreamWaitValue32_v2", Word.GATE, sequence, _AT_LEAST)

    def reveal(self) -> None:
        """Bring the values to the device, behind the gate."""
        target, size = ctypes.c_uint64(self.values.data_ptr()), ctypes.c_size_t(VALUES_BYTES)
        self._driver.ask("cuMemcpyHtoDAsync_v2", target, self._source, size, self._stream)

    def flag(self, sequence: int) -> None:
        """Say that all before has ended."""
        self._ask("cuStreamWriteValue32_v2", Word.FLAG, sequence, 0)

    def close(self) -> None:
        """Give the board's memory back; nothing may be in flight."""
        self._driver.ask("cuMemHostUnregister", ctypes.c_void_p(self._host))

    def _ask(self, name: str, word: Word, value: int, flags: int) -> None:
        self._driver.ask(name, self._stream, ctypes.c_uint64(self._seen + word), ctypes.c_uint32(value), ctypes.c_uint(flags))


def gate(board: ChainBoard, device: str, stream: Any = None) -> Gate:
    """Make the gate for where calls run; `stream` is torch's, of the caller."""
    return HostGate(board) if device == "cpu" else StreamGate(board, stream.cuda_stream if stream is not None else 0)


def await_open(board: ChainBoard, sequence: int) -> None:
    """Wait on the host until the gate opens: for calls that cannot be issued before."""
    while board.get(Word.GATE) < sequence:
        time.sleep(_PAUSE_S)
