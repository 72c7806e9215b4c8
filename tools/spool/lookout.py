"""Watching heartbeats: a worker is alive while its announcement keeps changing, by the watcher's own clock."""

from __future__ import annotations

import time

from tools.spool.folder import Spool
from tools.spool.identity import is_here
from tools.spool.records import Identity


class Lookout:
    """Remembers when each worker was last seen to change; clocks of different machines are never compared."""

    def __init__(self, spool: Spool, lease_s: float) -> None:
        """Hold a worker for dead that was silent for `lease_s` seconds."""
        self._spool = spool
        self._lease_s = lease_s
        # by session: the last beat seen, and when it was first seen by our clock
        self._seen: dict[str, tuple[int, float]] = {}
        self._moved: set[str] = set()

    def is_dead(self, worker: Identity) -> bool:
        """Whether the worker ended, its process is gone from this machine, or it was watched for the lease and never stirred."""
        if is_here(worker) is False:
            return True
        said = self._spool.announcement(worker.session)
        if said is not None and said.ended:
            return True
        return self._silence(worker.session, said.beat if said else -1) > self._lease_s

    def is_alive(self, worker: Identity) -> bool:
        """Whether the worker is known to work: its process runs here, or it stirred while we watched; and it is not dead."""
        return not self.is_dead(worker) and (worker.session in self._moved or is_here(worker) is True)

    def _silence(self, session: str, beat: int) -> float:
        now = time.monotonic()
        known = self._seen.get(session)
        if known is None or known[0] != beat:
            if known is not None:
                self._moved.add(session)
            self._seen[session] = (beat, now)
            return 0.0
        return now - known[1]
