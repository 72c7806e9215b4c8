"""Says what models and evaluators have answered where a bench has said nothing for a while: its log must not look dead."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable

from kernelwright.screen.words import counted

QUIET_S = 120.0
LOOK_S = 5.0
ARRIVALS = {"planned": "plan", "written": "source", "refused": "refusal", "evaluated": "verdict"}


class Pulse:
    """Counts what arrives inside of runs, and tells of it when nothing else was told for `quiet_s` seconds."""

    def __init__(self, say: Callable[[str], None], quiet_s: float = QUIET_S) -> None:
        """Tell `say`."""
        self._say = say
        self._quiet_s = quiet_s
        self._last = time.monotonic()
        self._arrived: Counter[str] = Counter()

    def note(self, event: str) -> None:
        """Count an event of a run where it is an answer."""
        if event in ARRIVALS:
            self._arrived[event] += 1

    def told(self) -> None:
        """Know that a line was printed."""
        self._last = time.monotonic()

    def look(self, in_flight: int) -> None:
        """Tell what arrived since this was told last, if anything did and it has been quiet."""
        if not self._arrived or time.monotonic() - self._last < self._quiet_s:
            return
        counts = [counted(n, noun) for kind, noun in ARRIVALS.items() if (n := self._arrived[kind])]
        self._arrived = Counter()
        self._say(f"arrived: {', '.join(counts)}; {counted(in_flight, 'run')} in flight")

    async def watch(self, in_flight: Callable[[], int], look_s: float = LOOK_S) -> None:
        """Look again and again until this is cancelled."""
        while True:
            self.look(in_flight())
            await asyncio.sleep(look_s)
