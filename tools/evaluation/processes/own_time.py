"""What a process and its descendants have used of the machine, read from /proc: processor time, and whether anything of it is awake."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_AWAKE = frozenset(b"RD")
"""States of a thread that runs or waits for a core, or for a disk: what keeps it from going on is the machine."""
_PROC = Path("/proc")


class Usage(NamedTuple):
    """A tree of processes at one moment."""

    processor_s: float
    """Processor time of all that is alive and of what was waited for; it falls where a child's was never waited for."""
    awake: bool
    """Whether a thread of it runs, or would run if it were given a core."""


def usage_of(pid: int) -> Usage | None:
    """Read what `pid` and everything below it have used; None where /proc shows nothing of it."""
    read = [_one(one) for one in _tree(pid)]
    known = [one for one in read if one is not None]
    if not known:
        return None
    return Usage(sum(one.processor_s for one in known), any(one.awake for one in known))


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for child in _children(pid):
        yield from _tree(child)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for thread in _threads(pid):
        with suppress(OSError):
            found += map(int, (thread / "children").read_text().split())
    return found


def _threads(pid: int) -> list[Path]:
    """List a process's threads; none where it has ended, which it may do between any two looks."""
    try:
        return list((_PROC / str(pid) / "task").iterdir())
    except OSError:
        return []


def _one(pid: int) -> Usage | None:
    try:
        fields = _fields(_PROC / str(pid) / "stat")
    except OSError:
        return None
    # user and system time, its own and of the children it has waited for
    ticks = sum(int(field) for field in fields[11:15])
    return Usage(ticks / _TICKS_A_SECOND, fields[0][0] in _AWAKE or any(map(_thread_awake, _threads(pid))))


def _thread_awake(thread: Path) -> bool:
    try:
        return _fields(thread / "stat")[0][0] in _AWAKE
    except OSError:
        return False


def _fields(stat: Path) -> list[bytes]:
    """Fields from the state on: the name before it may hold blanks and brackets."""
    return stat.read_bytes().rpartition(b")")[2].split()
