"""The append-only event log: one SQLite file that several processes write, and the source of truth of a knowledge base.

Nothing in it is ever changed or deleted (triggers refuse it); what is known now is a fold over its events (`knowledge.fold`).
Every event has a unique key, so that writing it again changes nothing.

WAL lets readers go on while one process writes. `synchronous=FULL` makes a commit wait for the disk: an entry that was
acknowledged survives a power failure too. One commit belongs to one evaluated candidate, which took seconds, so the
milliseconds do not matter. WAL needs a local file system: a knowledge base does not belong on a network share.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from knowledge.migrate import migrate_log, upgraded
from tools.errors import MachineError, UserError

SCHEMA_VERSION = 2
"""Version of the tables and of the event bodies; an older one is migrated (`knowledge.migrate`), a newer one refused."""

APPLICATION_ID = 0x6B776B62
"""SQLite's application id of a knowledge log: `kwkb`."""

BUSY_S = 60.0
"""How long a writer waits for another process's transaction."""

_KEPT = "what was kept before is still there"

_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  at TEXT NOT NULL,
  kind TEXT NOT NULL,
  key TEXT NOT NULL UNIQUE,
  subject TEXT NOT NULL,
  body TEXT NOT NULL,
  version INTEGER NOT NULL DEFAULT 1
);
CREATE INDEX events_by_kind ON events (kind, seq);
CREATE INDEX events_by_subject ON events (subject, seq);
CREATE TRIGGER events_never_change BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER events_never_go BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
"""


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
    RUN = "run"
    """A run that learns has ended; keyed by run."""
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
            self.path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
            try:
                _prepare(connection, self.path)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Check that this is a log of ours, or make it one."""
    _check(connection, path)
    _use_wal(connection)
    connection.execute("PRAGMA synchronous = FULL")
    if _pragma(connection, "application_id") == APPLICATION_ID:
        migrate_log(connection, path, SCHEMA_VERSION)
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # another process may have been first
        if _pragma(connection, "application_id") != APPLICATION_ID:
            for statement in _TABLES.strip().split(";\n"):
                connection.execute(statement)
            connection.execute("INSERT INTO meta VALUES ('store', ?)", (uuid.uuid4().hex,))
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse another program's database and another version's log; an empty file is neither."""
    # one snapshot: another process may be making the log between two reads
    connection.execute("BEGIN")
    try:
        application = _pragma(connection, "application_id")
        version = _pragma(connection, "user_version")
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    if application == APPLICATION_ID and not 1 <= version <= SCHEMA_VERSION:
        raise UserError(
            f"The knowledge base {path} is of version {version}; this release reads versions 1 to {SCHEMA_VERSION}.",
            "Export it with the release that wrote it and import the file here, or name another folder.",
        )
    if application != APPLICATION_ID and (application != 0 or tables):
        raise UserError(f"{path} is a database of another program.", "Name another folder for the knowledge base.")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL; SQLite does not always wait its busy time for this one, so wait here."""
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what SQLite and the file system raise into this project's errors; nothing that was committed is lost by any of them."""
    try:
        yield
    except json.JSONDecodeError as error:
        raise _damaged(path, f"an event is not JSON ({error})") from error
    except sqlite3.Error as error:
        raise _sqlite_error(path, error) from error
    except OSError as error:
        what = f"The knowledge base folder {path.parent} cannot be used: {error.strerror or error}."
        raise UserError(what, "Name a folder that you may write, or correct its permissions.") from error


def _sqlite_error(path: Path, error: sqlite3.Error) -> UserError | MachineError:
    text = str(error)
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_FULL"):
        return MachineError(f"No room to write the knowledge base {path}: {text}.", f"Free disk space and repeat; {_KEPT}.")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return MachineError(f"Another process has held {path} for over {BUSY_S:.0f} s.", "Wait for it to end, or end it, and repeat.")
    if name.startswith("SQLITE_IOERR"):
        what = f"The disk failed under the knowledge base {path}: {text}."
        return MachineError(what, f"Check the disk and its free space, and repeat; {_KEPT}.")
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")):
        what = f"The knowledge base {path} cannot be opened or written: {text}."
        return UserError(what, "Name a folder that you may write, or correct its permissions.")
    return _damaged(path, text)


def _damaged(path: Path, reason: str) -> UserError:
    mend = "Move the file away (its -wal and -shm too), then restore a copy or import an export; the index is rebuilt by itself."
    return UserError(f"The knowledge base {path} is damaged: {reason}.", mend)
