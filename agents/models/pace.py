"""When the next request may be sent: so many at once, so many a minute, and none while the server asks for patience."""

from __future__ import annotations

import asyncio
import time


class Pace:
    """The turns of one server's requests, within one event loop."""

    def __init__(self, at_once: int, per_minute: float) -> None:
        """Allow `at_once` requests in flight and `per_minute` beginnings; 0 sets no limit to these."""
        self.slots = asyncio.Semaphore(at_once)
        self._gap_s = 60.0 / per_minute if per_minute else 0.0
        self._next = 0.0

    async def turn(self) -> None:
        """Wait until a request may begin."""
        # a clock, not an event: and another request may move it meanwhile
        while (left := self._next - time.monotonic()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(left)
        self._next = time.monotonic() + self._gap_s

    def hold(self, seconds: float) -> None:
        """Let nobody begin for `seconds`: a server limits the rate of all requests, not of the one it answered so."""
        self._next = max(self._next, time.monotonic() + seconds)
