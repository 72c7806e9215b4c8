"""The file of the log: made once, recognised, refused, copied."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from knowledge.log.event_log import EventKind, EventLog
from knowledge.log.file import SCHEMA_VERSION, copy_file
from tools.errors import UserError


def write(log: EventLog, key: str) -> bool:
    """Append one event."""
    with log.writing() as writer:
        return writer.add(EventKind.RETIRE, key, "s", {"reason": "x"})


def test_many_may_make_the_log_at_the_same_moment(tmp_path: Path) -> None:
    """A log that is being made by another is waited for, not taken for another program's database."""
    for round_ in range(5):
        path, barrier = tmp_path / f"log{round_}", threading.Barrier(8)

        def make(name: int, path: Path = path, barrier: threading.Barrier = barrier) -> bool:
            log = EventLog(path)
            barrier.wait()
            added = write(log, str(name))
            log.close()
            return added

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(make, range(8))) == [True] * 8


def test_a_log_of_another_version_is_refused_with_a_mend(tmp_path: Path) -> None:
    """A newer schema is named, not guessed at, and the file is left as it is."""
    log = EventLog(tmp_path / "log")
    write(log, "a")
    log.close()
    connection = sqlite3.connect(tmp_path / "log")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    with pytest.raises(UserError, match=f"version {SCHEMA_VERSION + 1}.*Export"):
        log.read()


def test_the_database_of_another_program_is_refused(tmp_path: Path) -> None:
    """A knowledge base is never made inside someone else's database."""
    connection = sqlite3.connect(tmp_path / "log")
    connection.execute("CREATE TABLE theirs (x)")
    connection.commit()
    connection.close()
    with pytest.raises(UserError, match="another program"):
        EventLog(tmp_path / "log").read()


def test_a_file_that_is_no_database_is_refused_with_a_mend(tmp_path: Path) -> None:
    """Garbage gets one clear error that names the file and the way out."""
    (tmp_path / "log").write_bytes(b"not a database at all, but long enough to be read as one" * 50)
    with pytest.raises(UserError, match="damaged") as error:
        EventLog(tmp_path / "log").read()
    assert "knowledge salvage" in error.value.mend
    assert "--no-memory" in error.value.mend


def test_a_folder_that_cannot_be_made_is_a_user_error() -> None:
    """An unwritable place is named with a mend."""
    with pytest.raises(UserError, match=r"cannot be (used|opened)") as error:
        EventLog(Path("/proc/nowhere/log")).read()
    assert "Name a folder" in error.value.mend


def test_a_folder_in_place_of_the_file_is_a_user_error(tmp_path: Path) -> None:
    """A folder where the log should be is no reason for a stack trace."""
    (tmp_path / "log").mkdir()
    with pytest.raises(UserError, match="cannot be opened"):
        EventLog(tmp_path / "log").read()


def test_a_copy_has_all_events_and_a_name_of_its_own(tmp_path: Path) -> None:
    """A log is copied while it is open; the copy goes its own way, on a server too, since its store's name differs."""
    first, second = EventLog(tmp_path / "log"), EventLog(tmp_path / "new" / "log")
    write(first, "a")
    copy_file(first.path, second.path)
    assert [event.key for event in second.read()] == ["a"]
    assert first.store_id != second.store_id
    write(second, "b")
    assert [event.key for event in first.read()] == ["a"]
    first.close()
    second.close()


def test_what_is_no_log_is_not_copied(tmp_path: Path) -> None:
    """Garbage is named, and no half copy is left in the place of a log."""
    (tmp_path / "log").write_bytes(b"garbage" * 5000)
    with pytest.raises(UserError, match="cannot be copied"):
        copy_file(tmp_path / "log", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
