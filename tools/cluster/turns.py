"""Who waits for an evaluator of a crew, and which one each is given: whoever waits longest that which has least to do."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

from tools.cluster.member import Member


class Turns:
    """Hands out evaluators in the order of asking."""

    def __init__(self, usable: Callable[[], list[Member]], parallel: int) -> None:
        """Hand out those of `usable()`, each of which does `parallel` questions at once, and has as many more while many wait.

        Those it has built meanwhile: it neither waits for this machine nor for a compiler.
        """
        self._usable = usable
        self._parallel = parallel
        self._queue: deque[asyncio.Future[Member]] = deque()

    def enter(self) -> asyncio.Future[Member]:
        """Wait in turn; `leave` ends that, and gives back what was given."""
        place: asyncio.Future[Member] = asyncio.get_running_loop().create_future()
        self._queue.append(place)
        self.hand_out()
        return place

    def leave(self, place: asyncio.Future[Member]) -> None:
        """Wait no more, or give back what was given."""
        if not place.done():
            self._queue.remove(place)
            return
        one = place.result()
        one.busy -= 1
        one.idle_since = time.monotonic()
        self.hand_out()

    def hand_out(self) -> None:
        """Give evaluators to those who wait, as long as one has room."""
        while self._queue:
            usable = self._usable()
            # towards the end a question waits for whoever is free first, and not for a certain one
            many = len(self._queue) > len(usable)
            most = (2 if many else 1) * self._parallel
            one = min((one for one in usable if one.busy < most), key=lambda one: one.busy, default=None)
            if one is None:
                return
            one.busy += 1
            self._queue.popleft().set_result(one)
