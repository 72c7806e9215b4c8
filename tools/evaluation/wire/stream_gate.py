"""The gate on a device: what is issued behind it runs only when a number in shared memory says so.

A kernel that reads that number takes every multiprocessor whole until the gate opens, so that nothing begins on another stream either:
blocks that run are never put aside for others of their own process. A fence is a kernel of the same size whose blocks wait for each other:
it ends once every multiprocessor has been free, whatever stream had it. The flag is one of CUDA's stream memory operations (driver API,
"Stream Memory Operations"). Gate and flag are on host memory that the device can see.
"""

from __future__ import annotations

import ctypes
import struct
import time
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from tools.evaluation.wire.chain_board import BOARD_BYTES, VALUES_BYTES, ChainBoard, Word
from tools.evaluation.wire.driver_api import Driver, DriverError

if TYPE_CHECKING:
    import torch

_PORTABLE_AND_MAPPED = 3  # CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP
_MULTIPROCESSORS, _THREADS, _SHARED, _RESERVED = 16, 39, 81, 111
"""CUdevice_attribute: how many there are, and of one the threads, the bytes of shared memory, and those that each block loses of it."""
_BLOCKS = 2
"""Of one multiprocessor: one block may not have all of its threads."""
_WARP = 32
_KERNELS = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry gate(.param .u64 place, .param .u32 sequence)
{
  .reg .pred %shut;
  .reg .b32 %seen, %sequence, %thread;
  .reg .b64 %place;
  ld.param.u64 %place, [place];
  ld.param.u32 %sequence, [sequence];
  mov.u32 %thread, %tid.x;
  setp.ne.u32 %shut, %thread, 0;
  @%shut bra OPEN;
LOOK:
  ld.volatile.global.u32 %seen, [%place];
  setp.lt.u32 %shut, %seen, %sequence;
  @%shut bra LOOK;
OPEN:
  bar.sync 0;
  ret;
}
.visible .entry fence(.param .u64 counter, .param .u32 target)
{
  .reg .pred %waits;
  .reg .b32 %seen, %target, %thread;
  .reg .b64 %counter;
  ld.param.u64 %counter, [counter];
  ld.param.u32 %target, [target];
  mov.u32 %thread, %tid.x;
  setp.ne.u32 %waits, %thread, 0;
  @%waits bra MET;
  atom.global.add.u32 %seen, [%counter], 1;
LOOK:
  ld.volatile.global.u32 %seen, [%counter];
  sub.u32 %seen, %seen, %target;
  setp.lt.s32 %waits, %seen, 0;
  @%waits bra LOOK;
MET:
  bar.sync 0;
  ret;
}
"""
_PAUSE_S = 2e-5


class Gate(Protocol):
    """What stands before and after a chain of calls."""

    values: torch.Tensor
    """Bytes: the new values of the inputs' elements, once the gate is open."""

    def hold(self, sequence: int) -> None:
        """Let nothing run that is issued from now on, until the gate opens."""

    def reveal(self) -> None:
        """Bring the values to the device, behind the gate."""

    def fence(self) -> None:
        """Let nothing that follows begin before the whole device has ended what it was at, on any stream."""

    def flag(self, sequence: int) -> None:
        """Say that all before has ended."""

    def close(self) -> None:
        """Give the board's memory back."""


class HostGate:
    """Where the host computes: calls run as they are made."""

    def __init__(self, board: ChainBoard) -> None:
        """Stand before the `board`."""
        import torch

        self._board = board
        self.values = torch.from_numpy(board.values)

    def hold(self, sequence: int) -> None:
        """Wait for the gate: whoever opens it finds nothing issued."""
        await_open(self._board, sequence)

    def reveal(self) -> None:
        """Do nothing: they are there."""

    def fence(self) -> None:
        """Do nothing: each call has ended."""

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
        self._driver = driver or _own_driver()
        self._stream = ctypes.c_void_p(stream)
        self._host = board.memory.bytes_at(0, BOARD_BYTES).ctypes.data
        self._source = ctypes.c_void_p(board.values.ctypes.data)
        self._driver.ask("cuMemHostRegister_v2", ctypes.c_void_p(self._host), ctypes.c_size_t(BOARD_BYTES), _PORTABLE_AND_MAPPED)
        seen = ctypes.c_uint64()
        self._driver.ask("cuMemHostGetDevicePointer_v2", ctypes.byref(seen), ctypes.c_void_p(self._host), 0)
        self._seen = seen.value
        self._threads = _attribute(self._driver, _THREADS) // _BLOCKS // _WARP * _WARP
        self._grid = (_BLOCKS * _attribute(self._driver, _MULTIPROCESSORS), 1, 1)
        self._gate, self._fence, self._shared = _kernels(self._driver)
        self._met = torch.zeros(1, dtype=torch.int32, device="cuda")
        self._fences = 0

    def hold(self, sequence: int) -> None:
        """Let nothing run that is issued from now on, until the gate opens."""
        self._launch(self._gate, self._seen + Word.GATE, sequence)

    def fence(self) -> None:
        """Let nothing that follows begin before the whole device has ended what it was at, on any stream."""
        self._fences += 1
        self._launch(self._fence, self._met.data_ptr(), self._fences * self._grid[0] % (1 << 32))

    def reveal(self) -> None:
        """Bring the values to the device, behind the gate."""
        target, size = ctypes.c_uint64(self.values.data_ptr()), ctypes.c_size_t(VALUES_BYTES)
        self._driver.ask("cuMemcpyHtoDAsync_v2", target, self._source, size, self._stream)

    def flag(self, sequence: int) -> None:
        """Say that all before has ended."""
        place, value = ctypes.c_uint64(self._seen + Word.FLAG), ctypes.c_uint32(sequence)
        self._driver.ask("cuStreamWriteValue32_v2", self._stream, place, value, ctypes.c_uint(0))

    def close(self) -> None:
        """Give the board's memory back; nothing may be in flight."""
        self._driver.ask("cuMemHostUnregister", ctypes.c_void_p(self._host))

    def _launch(self, kernel: ctypes.c_void_p, address: int, number: int) -> None:
        """Launch a kernel that takes the whole device."""
        values = [struct.pack("<Q", address), struct.pack("<I", number)]
        stream = self._stream.value or 0
        launch = self._driver.launchable(kernel, self._grid, self._threads, self._shared, values, stream=stream)
        self._driver.check(launch(), "taking the whole device")


@cache
def _own_driver() -> Driver:
    return Driver()


@cache
def _kernels(driver: Driver) -> tuple[ctypes.c_void_p, ctypes.c_void_p, int]:
    """Load gate and fence, and say how many bytes of shared memory their blocks take."""
    shared = _attribute(driver, _SHARED) // _BLOCKS - _attribute(driver, _RESERVED)
    gate, fence = driver.functions(_KERNELS.encode(), ("gate", "fence"), shared)
    return gate, fence, shared


def _attribute(driver: Driver, name: int) -> int:
    import torch

    value = ctypes.c_int()
    driver.ask("cuDeviceGetAttribute", ctypes.byref(value), name, torch.cuda.current_device())
    return value.value


def load_ahead() -> None:
    """Have the driver compile the kernels now, in a process that will need a gate; where it cannot, who makes the gate is told."""
    with suppress(DriverError):
        _kernels(_own_driver())


def gate(board: ChainBoard, device: str, stream: Any = None) -> Gate:
    """Make the gate for where calls run; `stream` is torch's, of the caller."""
    return HostGate(board) if device == "cpu" else StreamGate(board, stream.cuda_stream if stream is not None else 0)


def await_open(board: ChainBoard, sequence: int) -> None:
    """Wait on the host until the gate opens: for calls that cannot be issued before."""
    while board.get(Word.GATE) < sequence:
        time.sleep(_PAUSE_S)
