"""One kernel's turn with the tools: what may still be called, the source that is meant, and what was handed in."""

from __future__ import annotations

import asyncio
from collections import Counter

from agents.writing.bench import Bench
from agents.writing.tools import SUBMIT
from tools.records import Plan

SHOWN = 6000
"""Characters of an answer: a prompt holds all of a turn's."""
SPENT = "No calls of tools are left. Answer with the whole file, or submit."
NOTHING = "There is no source yet: give the whole file."


class Session:
    """Counts and carries out the calls of one turn."""

    def __init__(self, bench: Bench, plan: Plan, purpose: str, allowed: int) -> None:
        """Allow this many calls, handing in not counted."""
        self._bench, self._plan, self._purpose = bench, plan, purpose
        self._allowed = allowed
        self._source = ""
        self._turn = asyncio.Lock()
        """Calls of one answer come at once, and mean one another's sources in the order in which they stand."""
        self.used: Counter[str] = Counter()
        """Calls by tool."""
        self.submitted = ""
        """The source that was handed in; empty where none was."""

    @property
    def left(self) -> int:
        """Calls that may still be made."""
        return self._allowed - self.used.total()

    async def call(self, tool: str, source: str | None, name: str = "") -> str:
        """Carry out one call after those before it; with None the tool takes no source, but perhaps a name."""
        async with self._turn:
            return await self._called(tool, source, name)

    async def _called(self, tool: str, source: str | None, name: str) -> str:
        if source is not None:
            self._source = source.strip() + "\n" if source.strip() else self._source
            if not self._source:
                return NOTHING
        if tool == SUBMIT:
            self.submitted = self._source
            return "Handed in."
        if self.left <= 0:
            return SPENT
        self.used[tool] += 1
        said = await self._bench.use(tool, self._source if source is not None else name, self._plan, self._purpose)
        shown = said if len(said) <= SHOWN else f"{said[:SHOWN]}\n[... {len(said) - SHOWN} characters left out ...]"
        return f"{shown}\n({self.left} calls of tools left.)"

    @property
    def note(self) -> str:
        """What was called, as a note of the kernel; empty where nothing was."""
        counts = ", ".join(f"{tool} {count}" for tool, count in self.used.items())
        return f"Tools that its writer called before handing it in: {counts}." if counts else ""
