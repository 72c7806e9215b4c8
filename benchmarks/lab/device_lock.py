"""The lock on a device: several processes prepare side by side, one at a time computes and is timed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from tools.records import Problem

HUGE_BYTES = 4 << 30
"""From these compulsory bytes on, float64 results take most of a device: one process at a time has such a problem on it."""
HOLD_S = 120.0
"""A process that holds the lock for longer is killed by its own alarm: it hangs in a kernel, where no Python runs."""


def keep_cores(folder: Path, cores: Collection[int]) -> None:
    """Have whoever takes the lock of `folder` run on these cores for as long; nobody else is to."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cores").write_text(" ".join(map(str, cores)))


class DeviceLock:
    """The lock on one device, in a file: who dies gives it back."""

    def __init__(self, folder: Path, hold_s: float = HOLD_S) -> None:
        """Share the lock with every process that names the same `folder`; `hold_s` of 0 sets no limit."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        kept = folder / "cores"
        self._cores = {int(number) for number in kept.read_text().split()} if kept.exists() else set()
        self._hold_s = hold_s
        self.is_ours = False
        self.held_s = 0.0
        """For how long this process has held the lock, all in all."""

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for the lock and hold it; inside itself it changes nothing."""
        if self.is_ours:
            yield
            return
        with self._locked("turn"), self._alone():
            began = time.monotonic()
            self.is_ours = True
            self._alarm(self._hold_s)
            try:
                yield
            finally:
                self._alarm(0)
                self.is_ours = False
                self.held_s += time.monotonic() - began

    @contextlib.contextmanager
    def room(self, problem: Problem) -> Iterator[None]:
        """Keep a huge problem by itself on the device, from its inputs to its end; for others this is nothing. Never within the lock."""
        if not is_huge(problem):
            yield
            return
        with self._locked("huge"):
            yield

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Run on the cores that are kept for this, where launching is not held up by what others compile."""
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, self._cores or before)
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)

    def _alarm(self, seconds: float) -> None:
        if self._hold_s:
            signal.setitimer(signal.ITIMER_REAL, seconds)

    @contextlib.contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        # closing the file gives the lock back, as death does
        with (self._folder / name).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def is_huge(problem: Problem) -> bool:
    """Whether the problem fills a device."""
    return problem.abi.nbytes >= HUGE_BYTES
