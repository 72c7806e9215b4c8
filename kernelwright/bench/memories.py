"""The memory of each arm and seed: a copy of its own of where all begin, so that no arm learns from another or from other work."""

from __future__ import annotations

from pathlib import Path

from graphs.run.assembly import open_memory
from graphs.run.settings import RunSettings
from knowledge.log.file import copy_file
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
                copy_file(self._start / LOG, folder / LOG)
            self._opened[name] = open_memory(settings)
        return self._opened[name]
