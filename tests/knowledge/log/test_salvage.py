"""A damaged log: what can be read of it is saved, and nothing is thrown away."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from knowledge.log.event_log import EventKind, EventLog
from knowledge.log.salvage import salvage
from tools.errors import UserError

EVENTS = 400
PAGE = 4096


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of some hundred events over many pages, all of it in one file."""
    path = tmp_path / "knowledge" / "log.sqlite3"
    written = EventLog(path)
    with written.writing() as writer:
        for number in range(EVENTS):
            writer.add(EventKind.RECALL, f"key {number}", "subject", {"number": number, "text": "x" * 500})
    written.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    return path


def _cut(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def _overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(10 * PAGE)
        file.write(b"\xa5" * 5 * PAGE)


@pytest.mark.parametrize("damage", [_cut, _overwrite])
def test_what_can_be_read_is_saved(log: Path, damage: Callable[[Path], None]) -> None:
    """A log that was cut off or overwritten in part is refused; afterwards the events of its whole pages are there under their numbers."""
    damage(log)
    before = EventLog(log)
    with pytest.raises(UserError, match="damaged"):
        before.check()
    before.close()
    damaged = log.read_bytes()
    saved = salvage(log)
    after = EventLog(log)
    after.check()
    events = after.read()
    assert saved.events == len(events) > EVENTS // 4
    assert all(event.body["number"] + 1 == event.seq and event.key == f"key {event.seq - 1}" for event in events)
    assert saved.kept.read_bytes() == damaged
    with after.writing() as writer:
        assert writer.add(EventKind.RUN, "another", "subject", {})


def test_a_whole_log_loses_nothing(log: Path) -> None:
    """Salvage of a log that is not damaged keeps every event."""
    before = EventLog(log).read()
    assert salvage(log).events == EVENTS
    assert EventLog(log).read() == before


def test_what_is_no_log_stays_where_it_is(log: Path) -> None:
    """Where nothing can be read it says so, and moves nothing."""
    log.write_text("no database at all")
    with pytest.raises(UserError, match="Not one event"):
        salvage(log)
    assert [path.name for path in log.parent.iterdir()] == [log.name]
