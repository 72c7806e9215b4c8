"""What runs share about models: what each server lacks, and, where the user wants it, the answers to questions asked before."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agents.models.calls import CallRecord, Findings
from tools.errors import UserError

_TABLES = """
CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, created REAL NOT NULL, json TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS findings (
    server TEXT NOT NULL, model TEXT NOT NULL, created REAL NOT NULL, json TEXT NOT NULL, PRIMARY KEY (server, model));
"""
FRESH_S = 7 * 86400.0
"""Findings older than this are found out again: servers are updated, and one refused request costs nothing."""


class Shared:
    """One SQLite file, opened when it is first needed; several processes may use it at once."""

    def __init__(self, path: Path, *, answers: bool = False) -> None:
        """Keep findings in `path`; with `answers` also keep every answer, and give it again."""
        self._path = path
        self._answers = answers
        self._lock = threading.Lock()
        self._open: sqlite3.Connection | None = None

    def answer(self, key: str) -> CallRecord | None:
        """Read the answer that some run got to this question; None where answers are not shared."""
        if not self._answers:
            return None
        with self._connection() as db:
            row = db.execute("SELECT json FROM answers WHERE key = ?", (key,)).fetchone()
        return CallRecord.model_validate_json(row[0]) if row else None

    def keep(self, key: str, record: CallRecord) -> None:
        """Keep an answer for other runs, unless answers are not shared."""
        if self._answers:
            with self._connection() as db:
                db.execute("INSERT OR IGNORE INTO answers VALUES (?, ?, ?)", (key, time.time(), record.model_dump_json()))

    def findings(self, model: str, server: str) -> Findings | None:
        """Read what `server` lacks for `model`."""
        with self._connection() as db:
            chosen = "SELECT json FROM findings WHERE server = ? AND model = ? AND created > ?"
            row = db.execute(chosen, (server, model, time.time() - FRESH_S)).fetchone()
        return Findings.model_validate_json(row[0]) if row else None

    def all_findings(self) -> tuple[Findings, ...]:
        """Read what is known of every server; nothing is made where there is no file."""
        if not self._path.is_file():
            return ()
        with self._connection() as db:
            rows = db.execute("SELECT json FROM findings ORDER BY server, model").fetchall()
        return tuple(Findings.model_validate_json(row[0]) for row in rows)

    def remember(self, found: Findings) -> None:
        """Keep what a server lacks."""
        with self._connection() as db:
            row = (found.server, found.model, time.time(), found.model_dump_json())
            db.execute("INSERT OR REPLACE INTO findings VALUES (?, ?, ?, ?)", row)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._open is not None:
                self._open.close()
            self._open = None

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                if self._open is None:
                    self._path.parent.mkdir(parents=True, exist_ok=True)
                    self._open = sqlite3.connect(self._path, timeout=30, check_same_thread=False, isolation_level=None)
                    self._open.execute("PRAGMA journal_mode=WAL")
                    self._open.executescript(_TABLES)
                yield self._open
            except (sqlite3.Error, OSError) as error:
                raise UserError(
                    f"What runs share about models, {self._path}, cannot be used ({error}).",
                    "Move it away or mend its permissions; it is made anew.",
                ) from error
