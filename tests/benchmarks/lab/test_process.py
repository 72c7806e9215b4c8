"""Helper processes: they answer, die, hang, and end when they are told to."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.lab.device_lock import DeviceLock, keep_cores
from benchmarks.lab.process import HelperDied, HelperPool, end_all
from tests.benchmarks.lab.helpers import serve_odd, serve_turns
from tools.errors import MachineError

LIMIT_S = 60.0


@pytest.fixture
def pool() -> Iterator[HelperPool]:
    """One helper."""
    made = HelperPool(1, serve_odd, (), {"LAB_TEST": "yes"})
    yield made
    end_all([made])


def test_a_helper_answers_and_begins_with_its_variables(pool: HelperPool) -> None:
    """A question may have several answers; the variables are the helper's alone."""
    with pool.borrowed() as helper:
        assert (helper.ask(3, LIMIT_S), helper.more(LIMIT_S)) == (3, "yes")
    assert "LAB_TEST" not in os.environ


def test_one_that_died_is_replaced(pool: HelperPool) -> None:
    """Its question is lost, the next is answered by another process."""
    with pool.borrowed() as helper:
        first = (helper.ask("who", LIMIT_S), helper.more(LIMIT_S))
        with pytest.raises(HelperDied, match="died") as caught:
            helper.ask("die", LIMIT_S)
        assert not caught.value.hung
        assert (helper.ask("who", LIMIT_S), helper.more(LIMIT_S)) != first


def test_one_that_hangs_is_killed_with_what_it_started(pool: HelperPool) -> None:
    """A compiler's assembler does not outlive it."""
    with pool.borrowed() as helper:
        child = helper.ask("hang", LIMIT_S)
        with pytest.raises(HelperDied) as caught:
            helper.more(0.1)
    assert caught.value.hung
    assert _ends(child)


def test_the_end_waits_for_nobody(pool: HelperPool) -> None:
    """Whoever is asking is told that it is over, as is who waits for a helper to be free."""
    told: list[str] = []
    asked = threading.Event()

    def ask() -> None:
        with pool.borrowed() as helper:
            try:
                helper.ask("hang", LIMIT_S)
                asked.set()
                helper.more(LIMIT_S)
            except MachineError as error:
                told.append(error.what)

    askers = [threading.Thread(target=ask) for _ in range(2)]
    for asker in askers:
        asker.start()
    assert asked.wait(LIMIT_S)
    began = time.monotonic()
    end_all([pool])
    for asker in askers:
        asker.join(5)
    assert time.monotonic() - began < 5
    assert told == ["The lab was ended."] * 2


def test_who_keeps_its_turn_for_too_long_is_killed_and_the_next_has_it(tmp_path: Path) -> None:
    """A kernel that never ends costs its own process alone."""
    hanging = HelperPool(1, serve_turns, (str(tmp_path), 0.3), {})
    others = HelperPool(1, serve_turns, (str(tmp_path), 60.0), {})
    with hanging.borrowed() as one, others.borrowed() as other:
        had = one.ask(600, LIMIT_S)
        next_had = other.ask(0, LIMIT_S)
        with pytest.raises(HelperDied) as caught:
            one.more(LIMIT_S)
    end_all([hanging, others])
    assert caught.value.hung
    assert next_had >= had + 0.3


def test_who_has_the_turn_runs_on_the_cores_that_are_kept_for_it(tmp_path: Path) -> None:
    """And goes back to its own afterwards, so that what compiles beside it never shares a core with what is timed."""
    before = os.sched_getaffinity(0)
    kept = {min(before)}
    keep_cores(tmp_path, kept)
    lock = DeviceLock(tmp_path, hold_s=0)
    with lock.taken():
        assert os.sched_getaffinity(0) == kept
    assert os.sched_getaffinity(0) == before


def _ends(process: int) -> bool:
    """Whether a process of ours is gone within a moment; one that is dead and was not asked after yet is gone."""
    for _ in range(100):
        try:
            if (Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False
