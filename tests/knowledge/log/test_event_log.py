"""The append-only event log."""

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from knowledge.log.event_log import EventKind, EventLog
from tools.errors import MachineError, UserError

WRITER = """
import sys
from pathlib import Path
from knowledge.log.event_log import EventKind, EventLog
log, name, count = EventLog(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3])
for i in range(count):
    with log.writing() as writer:
        writer.add(EventKind.RETIRE, f"{name}:{i}:a", name, {"i": i})
        writer.add(EventKind.RETIRE, f"{name}:{i}:b", name, {"i": i})
    print(i, flush=True)
"""


def start_writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    """Write `count` transactions of two events in another process, which prints each one it has finished."""
    return subprocess.Popen([sys.executable, "-c", WRITER, str(path), name, str(count)], stdout=subprocess.PIPE, text=True)


def write(log: EventLog, key: str) -> bool:
    """Append one event."""
    with log.writing() as writer:
        return writer.add(EventKind.RETIRE, key, "s", {"reason": "x"})


def test_events_come_back_in_order_with_their_bodies(tmp_path: Path) -> None:
    """What was appended is read back in the order of commitment."""
    log = EventLog(tmp_path / "log")
    for key in "abc":
        assert write(log, key)
    assert [event.key for event in log.read()] == ["a", "b", "c"]
    assert log.read(after=1)[0].body == {"reason": "x"}
    log.close()


def test_a_repeated_key_changes_nothing(tmp_path: Path) -> None:
    """Writing the same key again is refused silently and keeps the first body."""
    log = EventLog(tmp_path / "log")
    assert write(log, "a")
    assert not write(log, "a")
    assert log.counts() == {"retire": 1}
    log.close()


def test_a_transaction_that_raises_leaves_nothing(tmp_path: Path) -> None:
    """All events of a transaction are kept, or none."""
    log = EventLog(tmp_path / "log")
    write(log, "a")
    with pytest.raises(TypeError), log.writing() as writer:
        writer.add(EventKind.RETIRE, "c", "s", {"not json": object(), "before": writer.add(EventKind.RETIRE, "b", "s", {})})
    assert [event.key for event in log.read()] == ["a"]
    log.close()


@pytest.mark.parametrize("statement", ["UPDATE events SET body = '{}'", "DELETE FROM events"])
def test_no_event_can_be_changed_or_deleted(tmp_path: Path, statement: str) -> None:
    """The file itself refuses changes, by whatever program."""
    log = EventLog(tmp_path / "log")
    write(log, "a")
    log.close()
    connection = sqlite3.connect(tmp_path / "log")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    connection.close()


def test_two_processes_writing_at_once_lose_nothing(tmp_path: Path) -> None:
    """Every event of two processes that create and fill one log together is there, once."""
    writers = [start_writer(tmp_path / "log", name, 150) for name in ("left", "right")]
    for writer in writers:
        writer.communicate(timeout=120)
        assert writer.returncode == 0
    log = EventLog(tmp_path / "log")
    assert {event.key for event in log.read()} == {f"{n}:{i}:{p}" for n in ("left", "right") for i in range(150) for p in "ab"}
    log.close()


def test_a_killed_writer_leaves_a_readable_log_with_all_it_acknowledged(tmp_path: Path) -> None:
    """After kill -9 at random moments no acknowledged event is missing, no transaction is halved, and writing goes on."""
    log = EventLog(tmp_path / "log")
    for round_ in range(4):
        writer = start_writer(tmp_path / "log", f"w{round_}", 100_000)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(0.02 * (round_ + 1))
        writer.send_signal(signal.SIGKILL)
        acknowledged = [int(line) for line in writer.communicate()[0].split()]
        keys = {event.key for event in log.read() if event.subject == f"w{round_}"}
        assert {f"w{round_}:{i}:{p}" for i in [0, *acknowledged] for p in "ab"} <= keys
        assert len(keys) % 2 == 0
        assert write(log, f"after{round_}")
    log.check()
    log.close()


def test_overwritten_pages_are_found(tmp_path: Path) -> None:
    """A log whose pages were overwritten raises instead of answering."""
    log = EventLog(tmp_path / "log")
    for i in range(300):
        write(log, f"key{i}")
    log.close()
    with (tmp_path / "log").open("r+b") as file:
        file.seek(8192)
        file.write(os.urandom(16384))
    with pytest.raises(UserError, match="damaged"):
        log.check()
    log.close()


def fill_a_small_disk(path: Path, results: "multiprocessing.Queue[str]") -> None:
    """Write until a file may grow no more; report how many events were acknowledged."""
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
    log, kept = EventLog(path), 0
    try:
        while kept < 10_000:
            with log.writing() as writer:
                writer.add(EventKind.RETIRE, f"k{kept}", "s", {"text": "x" * 1000})
            kept += 1
    except MachineError as error:
        results.put(f"{kept} {error.mend}")


def test_a_disk_without_room_is_a_machine_error_and_loses_nothing(tmp_path: Path) -> None:
    """When the file cannot grow, the error says so and every acknowledged event is still there."""
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[str] = context.Queue()
    child = context.Process(target=fill_a_small_disk, args=(tmp_path / "log", results))
    child.start()
    kept, mend = results.get(timeout=60).split(" ", 1)
    child.join()
    log = EventLog(tmp_path / "log")
    assert "still there" in mend
    assert int(kept) > 10
    assert len(log.read()) == int(kept)
    log.close()
