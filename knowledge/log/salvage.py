"""Saves what can still be read of a damaged log: whole events, into a new log in its place."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from knowledge.log.file import explained, open_file
from tools.errors import UserError
from tools.records import Record
from tools.scratch import PREFIX, scratch

_MAGIC = b"SQLite format 3\0"
_LEAST_BYTES = 64
"""Of an event in the file: no more of them fit."""
_COLUMNS = ("seq", "at", "kind", "key", "subject", "body")
_BESIDE = ("", "-wal", "-shm")
"""Files of one database."""


class Salvaged(Record):
    """What was saved."""

    events: int
    kept: Path
    """Where the damaged log lies now."""


def salvage(path: Path) -> Salvaged:
    """Put a new log with all events that can be read in the place of the one at `path`, which is moved beside it.

    UserError where not one event can be read; nothing is moved then. Nobody else may be writing to it.
    """
    if not path.is_file():
        raise UserError(f"There is no knowledge base {path}.", "Name its folder, or the home folder, with --home.")
    fresh = path.with_name(f"{path.name}.salvaged")
    fresh.unlink(missing_ok=True)
    with explained(path), scratch(f"{PREFIX}salvage-") as folder:
        count = _copied(_whole_copy(path, folder), fresh)
    if not count:
        fresh.unlink(missing_ok=True)
        mend = "Move the file away (its -wal and -shm too), then restore a copy or import an export; runs go on with --no-memory."
        raise UserError(f"Not one event of {path} can be read.", mend)
    kept = path.with_name(f"{path.name}.damaged-{datetime.now(UTC):%Y%m%d-%H%M%S}")
    for end in _BESIDE:
        with suppress(FileNotFoundError):
            Path(f"{path}{end}").rename(f"{kept}{end}")
    fresh.rename(path)
    return Salvaged(events=count, kept=kept)


def _whole_copy(path: Path, folder: Path) -> Path:
    """Copy the database; one that was cut off gets zeros for the rest, without which SQLite reads nothing of it."""
    copy = folder / path.name
    for end in _BESIDE[:2]:
        with suppress(FileNotFoundError):
            shutil.copyfile(f"{path}{end}", f"{copy}{end}")
    with copy.open("r+b") as file:
        head = file.read(32)
        if head.startswith(_MAGIC):
            page = int.from_bytes(head[16:18], "big")
            # 1 stands for 65,536, which two bytes do not hold
            declared = (65_536 if page == 1 else page) * int.from_bytes(head[28:32], "big")
            file.truncate(max(declared, os.fstat(file.fileno()).st_size))
    return copy


def _copied(damaged: Path, fresh: Path) -> int:
    """Write the events of `damaged` to a new log under their numbers; return how many there were."""
    count = 0
    with closing(sqlite3.connect(damaged, isolation_level=None)) as old, closing(open_file(fresh)) as new:
        new.execute("BEGIN")
        for row in _events(old, damaged.stat().st_size):
            statement = "INSERT OR IGNORE INTO events (seq, at, kind, key, subject, body, version) VALUES (?, ?, ?, ?, ?, ?, ?)"
            count += new.execute(statement, row).rowcount
        new.execute("COMMIT")
        new.execute("PRAGMA journal_mode = DELETE")
    return count


def _events(old: sqlite3.Connection, size: int) -> Iterator[tuple[Any, ...]]:
    """Yield the rows that can be read, and are whole."""
    try:
        columns = {str(row[1]) for row in old.execute("PRAGMA table_info(events)")}
    except sqlite3.DatabaseError:
        return
    version = "version" if "version" in columns else "1"
    if columns.issuperset(_COLUMNS):
        statement = f"SELECT {', '.join(_COLUMNS)}, {version} FROM events NOT INDEXED WHERE seq BETWEEN ? AND ? ORDER BY seq"  # noqa: S608 - our own words
        for row in _between(old, statement, 1, size // _LEAST_BYTES):
            with suppress(ValueError, TypeError):
                json.loads(row[5])
                yield row


def _between(old: sqlite3.Connection, statement: str, first: int, last: int) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a range; what cannot be read is narrowed down by halves."""
    if first > last:
        return
    try:
        yield from old.execute(statement, (first, last)).fetchall()
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        if first < last:
            middle = (first + last) // 2
            yield from _between(old, statement, first, middle)
            yield from _between(old, statement, middle + 1, last)
