"""What the graph asks of a memory, and the memory that is turned off."""

from __future__ import annotations

from typing import Protocol

from knowledge.lessons.update import Update
from knowledge.lessons.writers import LessonWriter
from knowledge.records import Outcome, Recalled, Situation
from tools.records import Action


class Memory(Protocol):
    """Recalls strategies before a plan, learns from its outcome after."""

    name: str

    async def prepare(self) -> None:
        """Open what a first recall needs (the log, the index, the embedding model), so that it finds them ready."""

    async def recall(self, situation: Situation, limit: int = 6, about: str = "") -> tuple[Recalled, ...]:
        """Return at most `limit` strategies for `situation`, best first; `about` (run/round/parent) is what the log says of it."""

    async def expect(self, situation: Situation, action: Action, plan: str = "") -> float | None:
        """Parent time over child time that the trials of this very action in such a situation suggest; None where there are none.

        Trials of the same `plan` id, that is of the same step on the same parent, are believed alone.
        """

    async def learn(self, outcome: Outcome) -> tuple[str, ...]:
        """Credit what was cited and keep what is new; return the ids of strategies made or changed.

        Repeating an outcome changes nothing.
        """

    async def finish(self, run: str, writer: LessonWriter | None = None) -> Update | None:
        """Note that a run has ended, and rewrite lessons where enough runs have; None where nothing was rewritten.

        Repeating a run changes nothing. Without a `writer` the statistics over the outcomes write.
        """

    async def reflect(self, run: str, number: int, writer: LessonWriter | None = None, most: int = 4) -> Update | None:
        """Rewrite at most `most` lessons by the outcomes of a run under way, as its `number`-th such pass; None where nothing may change.

        Repeating a pass changes nothing and returns what it did.
        """

    def news(self) -> tuple[str, ...]:
        """What fell back or could not be done since this was last asked, one sentence each."""


class NoMemory:
    """The null memory of `--no-memory`: knows nothing and learns nothing."""

    name = "off"

    async def prepare(self) -> None:
        """Need nothing."""

    async def recall(self, situation: Situation, limit: int = 6, about: str = "") -> tuple[Recalled, ...]:
        """Return nothing."""
        return ()

    async def expect(self, situation: Situation, action: Action, plan: str = "") -> float | None:
        """Expect nothing."""
        return None

    async def learn(self, outcome: Outcome) -> tuple[str, ...]:
        """Keep nothing."""
        return ()

    async def finish(self, run: str, writer: LessonWriter | None = None) -> Update | None:
        """Rewrite nothing."""
        return None

    async def reflect(self, run: str, number: int, writer: LessonWriter | None = None, most: int = 4) -> Update | None:
        """Rewrite nothing."""
        return None

    def news(self) -> tuple[str, ...]:
        """Say nothing."""
        return ()


class FrozenMemory:
    """A memory that recalls what another knows and learns nothing: what a comparison holds still."""

    def __init__(self, memory: Memory) -> None:
        """Recall from `memory`."""
        self.name = f"{memory.name} (frozen)"
        self._memory = memory

    async def prepare(self) -> None:
        """Have the other memory get ready."""
        await self._memory.prepare()

    async def recall(self, situation: Situation, limit: int = 6, about: str = "") -> tuple[Recalled, ...]:
        """Return what the other memory recalls."""
        return await self._memory.recall(situation, limit, about)

    async def expect(self, situation: Situation, action: Action, plan: str = "") -> float | None:
        """Return what the other memory expects."""
        return await self._memory.expect(situation, action, plan)

    async def learn(self, outcome: Outcome) -> tuple[str, ...]:
        """Keep nothing."""
        return ()

    async def finish(self, run: str, writer: LessonWriter | None = None) -> Update | None:
        """Rewrite nothing."""
        return None

    async def reflect(self, run: str, number: int, writer: LessonWriter | None = None, most: int = 4) -> Update | None:
        """Rewrite nothing."""
        return None

    def news(self) -> tuple[str, ...]:
        """Say what the other memory has to say."""
        return self._memory.news()
