"""Who may use the device: checks side by side, a timing alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(eq=False)
class Stay:
    """One stay on the device."""

    waited_s: float = 0.0
    """How long it waited for the device."""
    company: bool = False
    """Whether another was there at the same time, so that a failure may be the other's fault."""


class Turns:
    """A lock with two doors; whoever waits to be alone goes before those who would share, so that timings come in a row."""

    def __init__(self, most: int) -> None:
        """Let at most `most` share the device."""
        self._most = most
        self._changed = threading.Condition()
        self._present: list[Stay] = []
        self._alone = False
        self._waiting = 0

    @contextmanager
    def shared(self) -> Iterator[Stay]:
        """Stay beside others."""
        stay, start = Stay(), time.monotonic()
        with self._changed:
            self._changed.wait_for(lambda: not self._alone and not self._waiting and len(self._present) < self._most)
            stay.waited_s = time.monotonic() - start
            self._present.append(stay)
            if len(self._present) > 1:
                for one in self._present:
                    one.company = True
        try:
            yield stay
        finally:
            with self._changed:
                self._present.remove(stay)
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[Stay]:
        """Stay with nobody else there."""
        start = time.monotonic()
        with self._changed:
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: not self._alone and not self._present)
                self._alone = True
            finally:
                self._waiting -= 1
        try:
            yield Stay(waited_s=time.monotonic() - start)
        finally:
            with self._changed:
                self._alone = False
                self._changed.notify_all()
