"""The bounded tail of what a process prints; for people to read, never parsed."""

from __future__ import annotations

import os
import re

TAIL_BYTES = 16 * 1024
"""How much is kept."""

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


class Log:
    """A pipe whose reading end keeps the last `TAIL_BYTES`."""

    def __init__(self) -> None:
        """Open the pipe; both ends close on exec, the writing one is handed to the process."""
        self.reader, self.writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(self.writer, True)
        self.limit = TAIL_BYTES
        self._tail = bytearray()
        self._dropped = False

    def drain(self) -> bool:
        """Read what has come, a bounded amount a time; False at the end of the pipe."""
        for _ in range(64):
            try:
                data = os.read(self.reader, 1 << 16)
            except BlockingIOError:
                return True
            if not data:
                return False
            self._tail += data
            if len(self._tail) > self.limit:
                self._dropped = True
                del self._tail[: -self.limit]
        return True

    @property
    def text(self) -> str:
        """The tail as text without control characters."""
        text = _CONTROL.sub("", self._tail.decode(errors="replace").replace("\r\n", "\n"))
        return ("[…]\n" if self._dropped else "") + text

    def close_writer(self) -> None:
        """Leave writing to the process alone."""
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    def close(self) -> None:
        """Close both ends."""
        self.close_writer()
        if self.reader >= 0:
            os.close(self.reader)
            self.reader = -1
