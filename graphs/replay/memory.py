"""A memory that brings up what a recorded run was told, in the round in which it was told, and learns nothing."""

from __future__ import annotations

from graphs.run.records import Recall
from knowledge.protocol import NoMemory
from knowledge.records import Recalled, Situation
from tools.tracing import RunStore


class RecordedMemory(NoMemory):
    """Recalls by round and parent, so that a coder is not shown what only a later round brought up."""

    name = "record"

    def __init__(self, record: RunStore) -> None:
        """Recall from `record`."""
        self._record = record

    async def recall(self, situation: Situation, limit: int = 6, about: str = "") -> tuple[Recalled, ...]:
        """Return what the record has for `about`: run, round and parent."""
        found = self._record.get("recall", about.partition("/")[2], Recall)
        return found.recalled if found else ()
