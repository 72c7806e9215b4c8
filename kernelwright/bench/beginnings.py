"""Which runs of a bench have begun: their file is read, their reference traced and timed, and from here on they work."""

from __future__ import annotations

import asyncio
from collections import defaultdict

NEEDED = frozenset({"measured", "traced"})
"""Events of a run's that it has begun with."""


class Beginnings:
    """Takes down the events of runs by name."""

    def __init__(self) -> None:
        """None has begun."""
        self._seen: dict[str, set[str]] = defaultdict(set)
        self._begun: dict[str, asyncio.Event] = defaultdict(asyncio.Event)

    def note(self, name: str, event: str) -> None:
        """Take down an event of a run."""
        self._seen[name].add(event)
        # a run that goes on after a kill was measured before
        if self._seen[name] >= NEEDED or "planned" in self._seen[name]:
            self._begun[name].set()

    async def begun(self, name: str) -> None:
        """Wait until a run has begun."""
        await self._begun[name].wait()
