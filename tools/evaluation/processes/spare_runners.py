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
        self._waiting: list[SpareRunner] = []
        self._making: list[Future[None]] = []
        self._closed = False

    def take(self) -> SpareRunner | None:
        """Take one out, if there is one that lives; the taker ends it."""
        while True:
            with self._lock:
                if not self._waiting:
                    return None
                spare = self._waiting.pop()
            if spare.child.lives():
                return spare
            spare.stack.close()

    def refill(self, count: int, threads: Executor) -> None:
        """Begin to make as many as are missing from `count`."""
        with self._lock:
            self._making = [making for making in self._making if not making.done()]
            for _ in range(count - len(self._waiting) - len(self._making)):
                self._making.append(threads.submit(self._make))

    def settle(self) -> None:
        """Wait until none is being made: something is to be timed."""
        with self._lock:
            making = list(self._making)
        wait(making)

    def close(self) -> None:
        """End all that wait; those being made end as soon as they are."""
        with self._lock:
            self._closed = True
            waiting, self._waiting = self._waiting, []
        for spare in waiting:
            spare.stack.close()

    def _make(self) -> None:
        # a machine that cannot make a spare is found out by whoever needs a runner
        with contextlib.suppress(MachineError, DeadlineError), ExitStack() as stack:
            child = stack.enter_context(self._fork())
            if child.receive(time.monotonic() + _WARM_S) != WARM:
                return
            with self._lock:
                if not self._closed:
                    self._waiting.append(SpareRunner(child, stack.pop_all()))
