"""The SQLite file of a run: opening it, its schema, and errors a person can act on."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tools.errors import MachineError, UserError

SCHEMA_VERSION = 1

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS records (
    kind TEXT NOT NULL, id TEXT NOT NULL, subject TEXT NOT NULL, created REAL NOT NULL, json TEXT NOT NULL, PRIMARY KEY (kind, id));
CREATE INDEX IF NOT EXISTS records_by_subject ON records (kind, subject);
CREATE INDEX IF NOT EXISTS records_by_time ON records (created);
CREATE TABLE IF NOT EXISTS spans (
    id INTEGER PRIMARY KEY, node TEXT NOT NULL, subject TEXT NOT NULL, started REAL NOT NULL, ended REAL,
    input TEXT NOT NULL, output TEXT, error TEXT);
CREATE INDEX IF NOT EXISTS spans_by_end ON spans (ended);
CREATE TABLE IF NOT EXISTS sessions (id INTEGER PRIMARY KEY, started REAL NOT NULL, last_seen REAL NOT NULL);
CREATE TABLE IF NOT EXISTS calls (key TEXT PRIMARY KEY, created REAL NOT NULL, json TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS calls_by_time ON calls (created);
"""
_FOLLOWING = {
    "calls": {
        "usd": "REAL GENERATED ALWAYS AS (CASE WHEN json_valid(json) THEN json ->> 'cost_usd' END) VIRTUAL",
        "tokens": "INTEGER GENERATED ALWAYS AS (CASE WHEN json_valid(json) THEN"
        " (json ->> '$.usage.input_tokens') + (json ->> '$.usage.output_tokens') END) VIRTUAL",
    },
    "records": {
        "verdict": "TEXT GENERATED ALWAYS AS (json ->> 'verdict') VIRTUAL",
        "tier": "TEXT GENERATED ALWAYS AS (json ->> '$.timing.tier') VIRTUAL",
        "measured_us": "REAL GENERATED ALWAYS AS (json ->> '$.timing.candidate.median_us') VIRTUAL",
        "speedups": "TEXT GENERATED ALWAYS AS (json -> '$.timing.speedups') VIRTUAL",
        "estimated_us": "REAL GENERATED ALWAYS AS (json ->> '$.estimate.candidate_us') VIRTUAL",
        "eager_us": "REAL GENERATED ALWAYS AS (json ->> '$.estimate.eager_us') VIRTUAL",
        "gpu_s": "REAL GENERATED ALWAYS AS (json ->> 'gpu_seconds') VIRTUAL",
    },
}
"""Columns that follow from a row's text, in files of earlier versions too: prompts and raw times are long, and only these are added up."""
_INDEXES = """
CREATE INDEX IF NOT EXISTS calls_by_cost ON calls (created, usd, tokens);
CREATE INDEX IF NOT EXISTS evaluations_in_outline ON records (
    kind, created, id, subject, verdict, tier, measured_us, speedups, estimated_us, eager_us, gpu_s) WHERE kind = 'evaluation';
"""


class Database:
    """One connection, shared by the threads of this process; every write is committed before the call returns."""

    def __init__(self, path: Path) -> None:
        """Open or create `path`; UserError where it is not one of ours or cannot be written."""
        self.path = path
        self._lock = threading.RLock()
        with self._readable_errors():
            self._connection = sqlite3.connect(path, timeout=30, check_same_thread=False, isolation_level=None)
            self._connection.row_factory = sqlite3.Row
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.executescript(_TABLES)
            self._add_following()
        self._check_version()

    def _add_following(self) -> None:
        for table, columns in _FOLLOWING.items():
            known = {row["name"] for row in self._connection.execute(f"PRAGMA table_xinfo({table})")}
            for name, meaning in columns.items():
                if name not in known:
                    # another process that opens the file may be first
                    with suppress(sqlite3.OperationalError):
                        self._connection.execute(f"ALTER TABLE {table} ADD COLUMN {name} {meaning}")
        self._connection.executescript(_INDEXES)

    def _check_version(self) -> None:
        rows = self.query("SELECT value FROM meta WHERE name = 'schema'")
        if not rows:
            self.execute("INSERT OR IGNORE INTO meta VALUES ('schema', ?)", str(SCHEMA_VERSION))
        elif rows[0]["value"] != str(SCHEMA_VERSION):
            raise UserError(
                f"{self.path} was written by another version of kernelwright (schema {rows[0]['value']}, this one reads {SCHEMA_VERSION}).",
                "Use the version that wrote it, or start a new run.",
            )

    def execute(self, statement: str, *values: Any) -> int:
        """Run one writing statement; return the id of the inserted row."""
        with self._lock, self._readable_errors():
            return self._connection.execute(statement, values).lastrowid or 0

    def query(self, statement: str, *values: Any) -> list[sqlite3.Row]:
        """Run one reading statement."""
        with self._lock, self._readable_errors():
            return self._connection.execute(statement, values).fetchall()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _readable_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise readable(error, self.path) from error


def readable(error: sqlite3.Error, path: Path) -> UserError | MachineError:
    """Say what an SQLite error on `path` means and how to mend it."""
    text = str(error)
    if "full" in text:
        return MachineError(f"No space left while writing {path}.", "Free some disk space, then resume the run: nothing finished is lost.")
    if "readonly" in text or "unable to open" in text:
        return UserError(f"{path} cannot be written ({text}).", "Choose another folder with --home, or mend its permissions.")
    if "not a database" in text or "malformed" in text:
        return UserError(f"{path} is damaged ({text}).", "Move it away and start the run anew; sources already written stay beside it.")
    return MachineError(f"SQLite failed on {path}: {text}.", "Check the disk, then resume the run.")
