"""The memory of each arm and seed: a copy of its own of where all begin, so that no arm learns from another or from other work."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from graphs.optimize.assembly import open_memory
from graphs.optimize.settings import RunSettings
from knowledge.protocol import Memory
from tools.errors import UserError

LOG = "log.sqlite3"
"""A knowledge base's source of truth; its index is made anew from it."""


class Memories:
    """Opens each memory once: several runs of one arm share it, as they would share a user's."""

    def __init__(self, start: str) -> None:
        """Begin each from the knowledge base in the folder `start`; from the curated seeds where it is empty."""
        self._start = Path(start) if start else None
        self._opened: dict[str, Memory] = {}
        if self._start is not None and not (self._start / LOG).is_file():
            raise UserError(f"There is no knowledge base in {start}.", "Name the folder that holds its log.sqlite3.")

    def open(self, settings: RunSettings) -> Memory:
        """Open the memory of a run with these settings."""
        folder = Path(settings.knowledge)
        name = f"{folder} {settings.memory} {settings.learns}"
        if name not in self._opened:
            if settings.memory and self._start is not None and not (folder / LOG).is_file():
                _copy_log(self._start / LOG, folder / LOG)
            self._opened[name] = open_memory(settings)
        return self._opened[name]


def _copy_log(source: Path, target: Path) -> None:
    """Copy a log that others may be writing to, whole as of one moment."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part")
    part.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as old, closing(sqlite3.connect(part)) as new:
            old.backup(new)
            new.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise UserError(
            f"The knowledge base {source} cannot be copied ({error}).", "Look at it with `kernelwright knowledge stats`."
        ) from error
    part.replace(target)
