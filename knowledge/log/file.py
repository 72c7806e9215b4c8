"""The file of an event log: how one is made, recognised, opened and copied, and what SQLite's failures mean to a user.

WAL lets readers go on while one process writes. `synchronous=FULL` makes a commit wait for the disk: an entry that was
acknowledged survives a power failure too. One commit belongs to one evaluated candidate, which took seconds, so the
milliseconds do not matter. WAL needs a local file system: a knowledge base does not belong on a network share.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from knowledge.log.migrate import migrate_log
from tools.errors import MachineError, UserError

SCHEMA_VERSION = 2
"""Version of the tables and of the event bodies; an older one is migrated (`knowledge.log.migrate`), a newer one refused."""

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


def open_file(path: Path) -> sqlite3.Connection:
    """Open the log at `path`, making it with its folder where there is none and migrating an older version.

    What is not a log of ours, or is of a newer version, raises UserError. The caller turns SQLite's own errors into ours
    (`explained`), and keeps threads apart.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def copy_file(source: Path, target: Path) -> None:
    """Copy a log that others may be writing to, whole as of one moment, under a store's name of its own.

    Two logs of one name would share a collection on a Chroma server, and each would take the other's vectors for its own.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part")
    part.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as old, closing(sqlite3.connect(part)) as new:
            old.backup(new)
            new.execute("PRAGMA journal_mode=DELETE")
            with new:
                new.execute("UPDATE meta SET value = ? WHERE name = 'store'", (uuid.uuid4().hex,))
    except sqlite3.Error as error:
        raise UserError(
            f"The knowledge base {source} cannot be copied ({error}).", "Look at it with `kernelwright knowledge stats`."
        ) from error
    part.replace(target)


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
    mend = "Save what can be read with `kernelwright knowledge salvage`, or restore a copy; until then runs go on with --no-memory."
    return UserError(f"The knowledge base {path} is damaged: {reason}.", mend)
