"""A turn among all pools of this machine, whichever process they live in: for what the driver does for every GPU one after the other."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PAUSE_S = 0.01


def locked(file: Path, kind: int) -> int:
    """Lock a file, as `kind` of `flock` says, until what this gives is closed; -1 where there are no locks to be had.

    Raises BlockingIOError while another has it.
    """
    try:
        opened = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:
        return -1
    try:
        fcntl.flock(opened, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(opened)
        raise
    except OSError:
        os.close(opened)
        return -1
    return opened


class HostTurn:
    """One pool's part: its workers have the turn together, and give it away when the last of them is done.

    Whose workers come one by one is done no sooner where two pools work at once, each at half the speed, than where one waits for the
    other: and then they do not meet again.
    """

    def __init__(self, file: Path, patience_s: float) -> None:
        """Take turns with whoever locks `file`; after `patience_s` in vain its workers go on without. Nothing is opened yet."""
        self._file, self._patience_s = file, patience_s
        self._lock = threading.Lock()
        self._workers = 0
        self._since = 0.0
        """When the first of them came."""
        self._held = -1

    @contextmanager
    def had(self) -> Iterator[None]:
        """Work in this pool's turn, or without one where that does not come."""
        with self._lock:
            if not self._workers:
                self._since = time.monotonic()
            self._workers += 1
        try:
            while not self._is_ours() and time.monotonic() < self._since + self._patience_s:
                time.sleep(_PAUSE_S)
            yield
        finally:
            with self._lock:
                self._workers -= 1
                if not self._workers and self._held >= 0:
                    # closing it unlocks it
                    os.close(self._held)
                    self._held = -1

    def _is_ours(self) -> bool:
        """Take the turn if nobody has it; a machine on which there is none to be had leaves everybody free."""
        with self._lock:
            if self._held < 0:
                try:
                    self._held = locked(self._file, fcntl.LOCK_EX)
                except BlockingIOError:
                    return False
            return True
