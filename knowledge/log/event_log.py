"""The append-only event log: what several processes append to and read, and the source of truth of a knowledge base.

Nothing in it is ever changed or deleted (triggers refuse it); what is known now is a fold over its events (`knowledge.log.fold`).
Every event has a unique key, so that writing it again changes nothing. Its file is `knowledge.log.file`'s.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from knowledge.log.file import SCHEMA_VERSION, explained, open_file
from knowledge.log.migrate import upgraded

__all__ = ["SCHEMA_VERSION", "Event", "EventKind", "EventLog", "Writer"]


class EventKind(StrEnum):
    """What can happen to a knowledge base."""

    STRATEGY = "strategy"
    """A strategy as first written; the subject is its id."""
    TRIAL = "trial"
    """The outcome of one plan, credited to one strategy; keyed by run, plan and strategy."""
    IGNORED = "ignored"
    """A strategy that was shown to the planner of one plan, which did not cite it."""
    OUTCOME = "outcome"
    """What one plan led to, whole: the replay buffer. Keyed by run and plan."""
    RECALL = "recall"
    """What was recalled for whom, with scores."""
    REPLACE = "replace"
    """The subject is superseded by another strategy, which takes over its evidence: a newer seed, or a merge of near-duplicates."""
    RETIRE = "retire"
    """The subject is no longer recalled."""
    REWRITE = "rewrite"
    """The subject's lesson or predicted gain is rewritten, with the reason and what stood there before."""
    REVERT = "revert"
    """An earlier rewrite, merge or retirement is undone; the body names its `seq`."""
    SHARED = "shared"
    """Events of other machines were taken over from a shared memory (`knowledge.sharing.exchange`): how far, and under which `seq`."""
    RUN = "run"
    """A run that learns has ended; keyed by run."""
    REFLECT = "reflect"
    """A bounded pass over one run's outcomes while it is under way; keyed by run and number."""
    UPDATE = "update"
    """A pass over the replay buffer: who rewrote, over which events, and what it changed."""


@dataclass(frozen=True)
class Event:
    """One line of the log."""

    seq: int
    """Order of commitment over all processes."""
    at: str
    """UTC, ISO 8601."""
    kind: str
    key: str
    subject: str
    body: dict[str, Any]
    """In the present version, whatever version it was written in."""


class Writer:
    """The open write transaction of a log; nothing of it is visible, or kept, before it ends well."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Made by `EventLog.writing` only."""
        self._connection = connection
        self._at = datetime.now(UTC).isoformat(timespec="milliseconds")

    def add(self, kind: EventKind, key: str, subject: str, body: dict[str, Any]) -> bool:
        """Append an event; return False where its key is already there, and change nothing then."""
        row = (self._at, kind.value, key, subject, json.dumps(body, ensure_ascii=False), SCHEMA_VERSION)
        statement = "INSERT OR IGNORE INTO events (at, kind, key, subject, body, version) VALUES (?, ?, ?, ?, ?, ?)"
        return self._connection.execute(statement, row).rowcount == 1

    def copy(self, event: Event) -> int | None:
        """Append an event of another log, of the time it was written there; return its `seq` here, None where its key is already there."""
        row = (event.at, event.kind, event.key, event.subject, json.dumps(event.body, ensure_ascii=False), SCHEMA_VERSION)
        statement = "INSERT OR IGNORE INTO events (at, kind, key, subject, body, version) VALUES (?, ?, ?, ?, ?, ?)"
        done = self._connection.execute(statement, row)
        return done.lastrowid if done.rowcount == 1 else None

    def seq(self, key: str) -> int | None:
        """Find the `seq` of the event with this key, or None."""
        row = self._connection.execute("SELECT seq FROM events WHERE key = ?", (key,)).fetchone()
        return None if row is None else int(row[0])

    def body(self, key: str) -> dict[str, Any] | None:
        """Read the body of the event with this key, or None."""
        row = self._connection.execute("SELECT kind, version, body FROM events WHERE key = ?", (key,)).fetchone()
        return None if row is None else upgraded(row[0], row[1], json.loads(row[2]))


class EventLog:
    """Opens the log at `path` on first use, creating it with its folder where there is none."""

    def __init__(self, path: Path) -> None:
        """Remember the path; nothing is touched before the first use."""
        self.path = path
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None

    @property
    def store_id(self) -> str:
        """The random name this log was given when it was made."""
        with self._lock, explained(self.path):
            row = self._open().execute("SELECT value FROM meta WHERE name = 'store'").fetchone()
            return str(row[0])

    @contextlib.contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[Writer]:
        """Hold the one write transaction over all processes: all of its events are kept, or none.

        What is not `durable` survives a kill of the process, and not a power failure within the next seconds.
        """
        with self._lock, explained(self.path):
            connection = self._open()
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield Writer(connection)
                connection.execute("COMMIT")
            except BaseException:
                # a failed COMMIT (full disk) may already have ended the transaction
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def read(self, after: int = 0, kinds: tuple[EventKind, ...] = tuple(EventKind)) -> list[Event]:
        """Return the events of these kinds with `seq` above `after`, in order."""
        marks = ",".join("?" * len(kinds))
        return self._select(f"seq > ? AND kind IN ({marks})", (after, *(k.value for k in kinds)))

    def of(self, subject: str) -> list[Event]:
        """Return the history of one strategy, in order."""
        return self._select("subject = ?", (subject,))

    def key(self, seq: int) -> str | None:
        """Return the key of one event, None where there is no such event."""
        with self._lock, explained(self.path):
            row = self._open().execute("SELECT key FROM events WHERE seq = ?", (seq,)).fetchone()
            return None if row is None else str(row[0])

    def holds(self, key: str) -> bool:
        """Whether there is an event with this key."""
        with self._lock, explained(self.path):
            return self._open().execute("SELECT 1 FROM events WHERE key = ?", (key,)).fetchone() is not None

    def rename(self) -> None:
        """Give the log another random name: where one of its name but of another history is met."""
        with self._lock, explained(self.path):
            self._open().execute("UPDATE meta SET value = ? WHERE name = 'store'", (uuid.uuid4().hex,))

    def counts(self) -> dict[str, int]:
        """Count the events of each kind."""
        with self._lock, explained(self.path):
            rows = self._open().execute("SELECT kind, count(*) FROM events GROUP BY kind ORDER BY kind")
            return {str(kind): int(count) for kind, count in rows}

    def last(self) -> int:
        """Return the highest `seq`, 0 for an empty log."""
        with self._lock, explained(self.path):
            row = self._open().execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()
            return int(row[0])

    def check(self) -> None:
        """Read every page; a damaged file raises UserError."""
        with self._lock, explained(self.path):
            first = self._open().execute("PRAGMA integrity_check").fetchone()[0]
            if first != "ok":
                raise sqlite3.DatabaseError(str(first))

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _select(self, where: str, values: tuple[object, ...]) -> list[Event]:
        statement = f"SELECT seq, at, kind, key, subject, body, version FROM events WHERE {where} ORDER BY seq"  # noqa: S608 - our own words
        with self._lock, explained(self.path):
            rows = self._open().execute(statement, values).fetchall()
            return [Event(s, at, kind, key, subject, upgraded(kind, v, json.loads(body))) for s, at, kind, key, subject, body, v in rows]

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = open_file(self.path)
        return self._connection
