"""Room for things that nobody waits for: who finds none does without."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Room:
    """So much of something, shared by threads."""

    def __init__(self, most: float) -> None:
        """Begin with all of it."""
        self._left = most
        self._lock = threading.Lock()

    @contextmanager
    def taken(self, size: float) -> Iterator[bool]:
        """Take what is there while the block runs, and say whether there was enough."""
        with self._lock:
            fits = size <= self._left
            self._left -= size if fits else 0.0
        try:
            yield fits
        finally:
            with self._lock:
                self._left += size if fits else 0.0
