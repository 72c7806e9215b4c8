"""Keeps the other workers of a run still while one is timed: what they compute would take turns with it on the device."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

DRAIN_S = 0.1
"""What stopped workers have launched is done by then: the longest operators of the suites take a tenth of it."""


@contextlib.contextmanager
def still_neighbours() -> Iterator[None]:
    """Stop the processes that this one's parent began beside it, and let them go on at the end."""
    others = [pid for pid in children_of(os.getppid()) if pid != os.getpid()]
    try:
        for pid in others:
            _tell(pid, signal.SIGSTOP)
        time.sleep(DRAIN_S if others else 0.0)
        yield
    finally:
        for pid in others:
            _tell(pid, signal.SIGCONT)


def resume_children() -> None:
    """Let all children go on: one that died while it was timed has left the others stopped."""
    for pid in children_of(os.getpid()):
        _tell(pid, signal.SIGCONT)


def children_of(parent: int) -> list[int]:
    """List the processes that one has begun."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # the name, in parentheses, may hold spaces
            if int(stat.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(stat.parent.name))
    return found


def _tell(pid: int, what: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, what)
