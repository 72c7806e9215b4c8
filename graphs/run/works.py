"""Taking down what a run spends its wall time on, while it runs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tools.tracing import RunStore
from tools.tracing.work import Work

WORK = "work"
"""Kind of record by which a store keeps a stretch of work."""
COMMAND = "command"
"""Fact about a run: when the process that began it started, seconds since the epoch."""


@contextmanager
def working(store: RunStore, what: str, about: str = "") -> Iterator[None]:
    """Measure one stretch of work; `about` is the key of the job that it is for."""
    started = time.time()
    try:
        yield
    finally:
        note_work(store, what, started, time.time(), about)


def note_work(store: RunStore, what: str, started: float, ended: float, about: str = "") -> None:
    """Keep a stretch that was measured elsewhere."""
    store.put(WORK, f"{what}/{started!r}", Work(what=what, started=started, ended=ended), subject=about)


def note_steps(store: RunStore, started: float, steps: Mapping[str, tuple[float, float]]) -> None:
    """Keep the steps of something that began at `started`, each with its begin and end in seconds from there."""
    for what, (begin, end) in steps.items():
        note_work(store, what, started + begin, started + end)


def process_began() -> float:
    """When this process started, seconds since the epoch; now where the system does not tell."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        uptime = float(Path("/proc/uptime").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return time.time()
    return time.time() - uptime + ticks / os.sysconf("SC_CLK_TCK")
