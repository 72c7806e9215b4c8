"""A worker's announcement, written anew every few seconds by a thread of its own, however busy the worker is."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from tools.spool.folder import Spool
from tools.spool.records import Announcement

LEASE_S = 120.0
"""Silence after which a worker of another machine counts as dead: twelve beats, and twice what NFS may cache a folder."""


class Heartbeat:
    """Announces a worker while its `with` block runs, and at its end that it ended."""

    def __init__(self, spool: Spool, announcement: Announcement, lease_s: float = LEASE_S) -> None:
        """Write `announcement` often enough for others to wait only `lease_s` seconds."""
        self._spool = spool
        self._said = announcement
        self._period_s = lease_s / 12
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        """Announce, and go on doing so."""
        self._write()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Say that the worker ended: what it held is free at once."""
        self._stop.set()
        self._thread.join()
        self._try(ended=True)

    @property
    def announcement(self) -> Announcement:
        """What was last said."""
        return self._said

    def count(self) -> None:
        """One more job is answered; it is said with the next beat."""
        with self._lock:
            self._said = self._said.model_copy(update={"done": self._said.done + 1})

    def _beat(self) -> None:
        while not self._stop.wait(self._period_s):
            self._try()

    def _try(self, *, ended: bool = False) -> None:
        try:
            self._write(ended=ended)
        except OSError:
            # a folder that is away for a while: the next beat tries again, and whoever waited too long takes the job over
            return

    def _write(self, *, ended: bool = False) -> None:
        with self._lock:
            self._said = self._said.model_copy(update={"beat": self._said.beat + 1, "written": time.time(), "ended": ended})
            self._spool.announce(self._said)
