"""The places of a pool: so many evaluations at once, those of the problem that was begun first before others."""

from __future__ import annotations

import asyncio
import heapq
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

PRECEDENCE_S = 60.0
"""Whoever has waited for this much longer than another goes first, whatever their problems."""


class Place:
    """A place that is held."""

    def __init__(self, waited_s: float, leave: Callable[[], None]) -> None:
        """Hold it; `leave` lets the next one in."""
        self.waited_s = waited_s
        """How long was waited for it."""
        self._leave = leave
        self._lock = threading.Lock()
        self._is_held = True

    def leave(self) -> None:
        """Let the next one in, once; any thread may say so."""
        with self._lock:
            was_held, self._is_held = self._is_held, False
        if was_held:
            self._leave()


class Places:
    """A gate for coroutines of any event loop: problems are finished one after the other instead of all at the end."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Let `most` in at once."""
        self._free = most
        self._clock = clock
        self._lock = threading.Lock()
        self._begun: dict[str, float] = {}
        """By problem, when it was first heard of."""
        self._waiting: list[tuple[float, int, asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self._came = 0

    def hear_of(self, problem: str) -> None:
        """Take down that a problem is begun, unless it is known."""
        with self._lock:
            self._begun.setdefault(problem, self._clock())

    @asynccontextmanager
    async def taken(self, problem: str) -> AsyncIterator[Place]:
        """Hold a place for a candidate of `problem`, until the end or until it is left."""
        self.hear_of(problem)
        came = self._clock()
        await self._enter(max(self._begun[problem], came - PRECEDENCE_S))
        place = Place(self._clock() - came, self._leave)
        try:
            yield place
        finally:
            place.leave()

    async def _enter(self, rank: float) -> None:
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        with self._lock:
            if self._free:
                self._free -= 1
                return
            self._came += 1
            heapq.heappush(self._waiting, (rank, self._came, loop, turn))
        try:
            await turn
        except asyncio.CancelledError:
            with self._lock:
                waits = [one for one in self._waiting if one[3] is not turn]
                was_let_in = len(waits) == len(self._waiting)
                self._waiting = waits
                heapq.heapify(self._waiting)
            if was_let_in:
                self._leave()
            raise

    def _leave(self) -> None:
        with self._lock:
            if not self._waiting:
                self._free += 1
                return
            _, _, loop, turn = heapq.heappop(self._waiting)
        loop.call_soon_threadsafe(_let_in, turn)


def _let_in(turn: asyncio.Future[None]) -> None:
    # one that was cancelled in the same moment passes its place on itself
    if not turn.done():
        turn.set_result(None)
