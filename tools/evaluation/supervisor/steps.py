"""The steps of one piece of work, with when each began and ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Steps:
    """Takes down steps, some of them side by side."""

    def __init__(self) -> None:
        """Begin now."""
        self._began = time.monotonic()
        self.found: dict[str, tuple[float, float]] = {}
        """By step: begin and end, in seconds from the beginning."""

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Take down one step."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.found[name] = started - self._began, time.monotonic() - self._began

    def waited(self, name: str, seconds: float) -> None:
        """Take down a wait that has ended now."""
        now = time.monotonic() - self._began
        self.found[name] = now - seconds, now
