"""Brings older knowledge into the present version: the log's tables in place, event bodies and export lines as they are read.

No event is rewritten: the log keeps what was written and the version it was written in, and reading translates it step by
step. What a later version knows and an earlier one did not is left empty, never guessed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

Body = dict[str, Any]


def upgraded(kind: str, version: int, body: Body) -> Body:
    """Translate an event body from the version it was written in into the present one."""
    for step in range(version, max(_STEPS) + 1):
        translate = _STEPS[step].get(kind)
        body = translate(body) if translate else body
    return body


def upgraded_line(version: int, line: Body) -> Body:
    """Translate one line of an export; lines carry strategies as STRATEGY events do."""
    return upgraded("strategy", version, line)


def _strategy_from_1(body: Body) -> Body:
    """Schema 2 has more fields, all of which may be empty."""
    strategy = body.get("strategy")
    return {**body, "strategy": {**strategy, "schema_version": 2}} if isinstance(strategy, dict) else body


_STEPS: dict[int, dict[str, Callable[[Body], Body]]] = {1: {"strategy": _strategy_from_1}}
"""Translation by the version it starts from and the kind of event."""


def migrate_log(connection: sqlite3.Connection, path: Path, present: int) -> None:
    """Bring the tables of an older log up to date in one transaction, after a whole copy of it was put beside it.

    A process of the older release that has the log open may go on: what it appends is marked as of version 1.
    """
    version = _version(connection)
    if version == present:
        return
    _copy(connection, path.with_name(f"{path.name}.v{version}"))
    connection.execute("BEGIN IMMEDIATE")
    try:
        # another process may have been first
        if _version(connection) == 1:
            connection.execute("ALTER TABLE events ADD COLUMN version INTEGER NOT NULL DEFAULT 1")
            connection.execute("PRAGMA user_version = 2")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _copy(connection: sqlite3.Connection, target: Path) -> None:
    """Copy the log whole as of one moment; an earlier copy is left as it is."""
    if target.exists():
        return
    part = target.with_suffix(".part")
    part.unlink(missing_ok=True)
    with closing(sqlite3.connect(part)) as copy:
        connection.backup(copy)
    part.replace(target)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
