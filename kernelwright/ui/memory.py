"""What pages show of the memory: its strategies, what came of each, where it was used, and how its lesson changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
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

    def overview(self, wanted: str) -> Facts:
        """Every strategy that has the words of `wanted`, those with the most trials first, and how many there are of each state."""
        if not self._exists():
            return {"strategies": [], "states": {}, "whole": 0}
        with self._opened() as base:
            found = [_line(one) for one in base.all()]
        states = Counter(line["state"] for line in found)
        words = wanted.lower().split()
        kept = [line for line in found if all(word in f"{line['title']} {line['families']} {line['state']}".lower() for word in words)]
        return {"strategies": sorted(kept, key=lambda line: (-line["tries"], line["title"])), "states": dict(states), "whole": len(found)}

    def one(self, name: str) -> Facts:
        """A strategy whole; raises UserError where there is none of that name."""
        if not self._exists():
            raise UserError("There is no memory yet.", "The first run begins one.")
        with self._opened() as base:
            strategy = base.get(name)
            return {
                **_line(strategy),
                **strategy.model_dump(mode="json", exclude={"held_as"}),
                "worth": base.worth(name).model_dump(mode="json"),
                "changed": [one.model_dump(mode="json") for one in base.changes(0, name)],
                "history": [_event(line) for line in base.history(name)],
            }

    def _exists(self) -> bool:
        return (self._folder / "log.sqlite3").is_file()

    @contextmanager
    def _opened(self) -> Iterator[KnowledgeBase]:
        # nothing is looked up by meaning here, so no embedding model is loaded
        base = KnowledgeBase(self._folder, open_embedder("hashing"))
        try:
            yield base
        finally:
            base.close()


def _line(strategy: Any) -> Facts:
    return {
        "id": strategy.id,
        "title": strategy.title,
        "families": ", ".join(strategy.situation.families) or "any family",
        "bottleneck": str(strategy.situation.bottleneck or "any bottleneck"),
        "state": str(strategy.state),
        "tries": len(strategy.trials),
        "gain": strategy.changes.median,
        "basis": strategy.changes.basis,
        "passes": strategy.changes.passes,
        "expected": strategy.expected_gain,
    }


def _event(line: str) -> Facts:
    """One line of a strategy's history: when, what, and the run and candidate that it names."""
    at, kind, key = line.split(" ", 2)
    parts = key.split(":")
    return {
        "at": at[:19].replace("T", " "),
        "kind": kind,
        "run": parts[1] if len(parts) > 2 else "",
        "plan": parts[2] if len(parts) > 2 else "",
    }
