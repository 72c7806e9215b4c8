"""What pages show of the memory: its strategies, what came of each, and how its lesson changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from knowledge.store import KnowledgeBase
from knowledge.vectors.embedding import open_embedder
from tools.errors import UserError

Facts = dict[str, Any]


class Memory:
    """The strategies of a home folder."""

    def __init__(self, home: Path) -> None:
        """Read `home`/knowledge, where there is one."""
        self._folder = home / "knowledge"

    def all(self) -> list[Facts]:
        """Every strategy, those with the most trials first; none where no run has begun a memory."""
        if not self._exists():
            return []
        found = [self._line(one) for one in self._base().all()]
        return sorted(found, key=lambda line: (-line["tries"], line["title"]))

    def one(self, name: str) -> Facts:
        """A strategy whole; raises UserError where there is none of that name."""
        if not self._exists():
            raise UserError("There is no memory yet.", "The first run begins one.")
        base = self._base()
        strategy = base.get(name)
        facts = strategy.model_dump(mode="json", exclude={"held_as"})
        return {
            **self._line(strategy),
            **facts,
            "worth": base.worth(name).model_dump(mode="json"),
            "history": base.history(name),
        }

    def _exists(self) -> bool:
        return (self._folder / "log.sqlite3").is_file()

    def _base(self) -> KnowledgeBase:
        # nothing is looked up by meaning here, so no embedding model is loaded
        return KnowledgeBase(self._folder, open_embedder("hashing"))

    @staticmethod
    def _line(strategy: Any) -> Facts:
        return {
            "id": strategy.id,
            "title": strategy.title,
            "families": ", ".join(strategy.situation.families) or "any family",
            "bottleneck": str(strategy.situation.bottleneck or "any bottleneck"),
            "state": str(strategy.state),
            "tries": len(strategy.trials),
            "gain": strategy.changes.median,
            "expected": strategy.expected_gain,
        }
