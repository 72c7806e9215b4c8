"""Shared memory kept from one evaluation for the next: new pages cost ten times what a copy into used ones does."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tools.evaluation.sandbox.control_group import memory_bytes
from tools.evaluation.wire.memory import Memory
from tools.profiling.nvml import device_count

_SHARE = 1 / 8
"""Of the memory that processes here may use, at most, for what waits in all pools of a kind together: each GPU's pool has one."""
_WIDER = 4
"""Memory up to so many times as large as what is asked for is given: another problem's pages are still better than new ones."""
_LEAST = 16 << 20
"""New pages of less cost about ten milliseconds: not worth a descriptor."""


def room() -> int:
    """Bytes that may wait for one of this machine's GPUs; asked each time, since memory may be added to a machine as it is used."""
    return int(memory_bytes() * _SHARE) // max(1, device_count())


def nothing() -> int:
    """Keep none."""
    return 0


class SharedMemoryPool:
    """Memory that only trusted processes have mapped, the dead aside; what is in it is old, and whoever takes it writes before reading."""

    def __init__(self, most: Callable[[], int] = room, least: int = _LEAST, wider: int = _WIDER) -> None:
        """Keep at most `most` bytes, in pieces of `least` or more; give what is up to `wider` times as large as what is asked for."""
        self._least = least
        self._wider = wider
        self._most = most
        self._lock = threading.Lock()
        self._waiting: list[Memory] = []
        self._closed = False

    def take(self, size: int) -> Memory:
        """Give memory of `size` bytes or somewhat more: the smallest that waits, of equal ones the last put back, or new."""
        with self._lock:
            fitting = [memory for memory in reversed(self._waiting) if size <= memory.size <= self._wider * size]
            if fitting:
                memory = min(fitting, key=lambda one: one.size)
                self._waiting.remove(memory)
                return memory
        return Memory(size)

    def put(self, memory: Memory) -> None:
        """Take memory back that nobody uses any more; the oldest is given to the system where it is too much."""
        if memory.size < self._least:
            memory.close()
            return
        most = self._most()
        with self._lock:
            self._waiting.append(memory)
            while self._waiting and (self._closed or sum(kept.size for kept in self._waiting) > most):
                self._waiting.pop(0).close()

    def close(self) -> None:
        """Give everything to the system, also what is put back later."""
        with self._lock:
            self._closed = True
            while self._waiting:
                self._waiting.pop().close()
