"""Runners that wait for a candidate: walls built, CUDA started, and no candidate code met yet.

Starting CUDA takes a third of a second in each process, and more side by side. SpareRunners are made while candidates are checked, never
while one is timed, and each serves one candidate once.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, wait
from contextlib import AbstractContextManager, ExitStack
from typing import NamedTuple

from tools.errors import MachineError
from tools.evaluation.processes.child import Child, DeadlineError
from tools.evaluation.wire.jobs.runner import WARM

_WARM_S = 60.0
_AT_ONCE = 4
"""Made at the same time: the driver starts CUDA in one process after the other, on whichever GPU, and others' ends wait in its line."""

Fork = Callable[[], AbstractContextManager[Child]]


class SpareRunner(NamedTuple):
    """A waiting runner, and what ends it."""

    child: Child
    stack: ExitStack


class SpareRunners:
    """A few waiting runners of one worker pool."""

    def __init__(self, fork: Fork) -> None:
        """Have `fork` start one; none is started yet."""
        self._fork = fork
        self._lock = threading.Lock()
        self._turn = threading.BoundedSemaphore(_AT_ONCE)
        self._waiting: list[SpareRunner] = []
        self._making: list[Future[None]] = []
        self._closed = False
        self._threads: Executor | None = None
        self._count = 0
        """How many are to wait; 0 while something is timed."""

    def take(self) -> SpareRunner | None:
        """Take one out, if there is one that lives; the taker ends it. Unless something is timed, another is begun in its place."""
        while True:
            with self._lock:
                if not self._waiting:
                    return None
                spare = self._waiting.pop()
                self._top_up()
            if spare.child.lives():
                return spare
            spare.stack.close()

    def refill(self, count: int, threads: Executor) -> None:
        """Begin to make as many as are missing from `count`, and from now on whatever is taken."""
        with self._lock:
            self._count, self._threads = count, threads
            self._top_up()

    def settle(self) -> None:
        """Begin no more, and wait until none is being made: something is to be timed."""
        with self._lock:
            self._count = 0
            making = list(self._making)
        wait(making)

    def _top_up(self) -> None:
        self._making = [making for making in self._making if not making.done()]
        for _ in range(self._count - len(self._waiting) - len(self._making)):
            assert self._threads is not None
            self._making.append(self._threads.submit(self._make))

    def close(self) -> None:
        """End all that wait; those being made end as soon as they are."""
        with self._lock:
            self._closed = True
            waiting, self._waiting = self._waiting, []
        for spare in waiting:
            spare.stack.close()

    def _make(self) -> None:
        # a machine that cannot make a spare is found out by whoever needs a runner
        with self._turn, contextlib.suppress(MachineError, DeadlineError), ExitStack() as stack:
            child = stack.enter_context(self._fork())
            if child.receive(time.monotonic() + _WARM_S) != WARM:
                return
            with self._lock:
                if not self._closed:
                    self._waiting.append(SpareRunner(child, stack.pop_all()))
