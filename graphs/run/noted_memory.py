"""A memory whose every question is taken down with its time in the run's store."""

from __future__ import annotations

from graphs.run.works import working
from knowledge.lessons.update import Update
from knowledge.lessons.writers import LessonWriter
from knowledge.protocol import Memory
from knowledge.records import Outcome, Recalled, Situation
from tools.records import Action
from tools.tracing import RunStore

WHAT = "memory"


class NotedMemory:
    """Passes everything on."""

    def __init__(self, memory: Memory, store: RunStore) -> None:
        """Ask `memory`, and write times into `store`."""
        self.name = memory.name
        self._memory = memory
        self._store = store

    async def prepare(self) -> None:
        """Have the memory get ready."""
        with working(self._store, WHAT):
            await self._memory.prepare()

    async def recall(self, situation: Situation, limit: int = 6, about: str = "") -> tuple[Recalled, ...]:
        """Return what the memory recalls."""
        with working(self._store, WHAT):
            return await self._memory.recall(situation, limit, about)

    async def expect(self, situation: Situation, action: Action, plan: str = "") -> float | None:
        """Return what the memory expects."""
        with working(self._store, WHAT):
            return await self._memory.expect(situation, action, plan)

    async def learn(self, outcome: Outcome) -> tuple[str, ...]:
        """Have the memory learn."""
        with working(self._store, WHAT):
            return await self._memory.learn(outcome)

    async def finish(self, run: str, writer: LessonWriter | None = None) -> Update | None:
        """Tell the memory that a run has ended."""
        with working(self._store, WHAT):
            return await self._memory.finish(run, writer)

    async def reflect(self, run: str, number: int, writer: LessonWriter | None = None, most: int = 4) -> Update | None:
        """Have the memory reflect."""
        with working(self._store, WHAT):
            return await self._memory.reflect(run, number, writer, most)

    def news(self) -> tuple[str, ...]:
        """Say what the memory has to say."""
        return self._memory.news()
