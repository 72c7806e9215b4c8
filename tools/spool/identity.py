"""Which process a worker is, and whether a process of this very machine is still there."""

from __future__ import annotations

import os
import secrets
import socket
from pathlib import Path

from tools.spool.records import Identity


def myself() -> Identity:
    """Identify this process as a new worker."""
    started = _started(os.getpid())
    return Identity(
        session=secrets.token_hex(6),
        host=socket.gethostname(),
        boot=_boot(),
        pids=_pids(),
        pid=os.getpid(),
        started=started or 0,
    )


def is_here(worker: Identity) -> bool | None:
    """Whether the worker's process still runs on this machine; None where it cannot be seen from here.

    It can be where it was started on this boot of this machine, in this process's own numbering of processes.
    """
    if not worker.boot or not worker.pids or (worker.boot, worker.pids) != (_boot(), _pids()):
        return None
    return _started(worker.pid) == worker.started


def _boot() -> str:
    return _read(Path("/proc/sys/kernel/random/boot_id"))


def _pids() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _started(pid: int) -> int | None:
    """Start of a process in ticks since boot; None where there is none, or only its exit status is left."""
    fields = _read(Path("/proc", str(pid), "stat")).rpartition(")")[2].split()
    return int(fields[19]) if fields and fields[0] not in {"Z", "X"} else None


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
