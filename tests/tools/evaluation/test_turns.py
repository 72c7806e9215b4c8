"""Turns on the device."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from tools.evaluation.turns import Turns


def test_checks_share_and_know_it() -> None:
    """Two that share the device are there at the same time, and both know that they had company."""
    turns, meet = Turns(2), threading.Barrier(2, timeout=10)

    def check() -> bool:
        with turns.shared() as stay:
            meet.wait()
            return stay.company

    with ThreadPoolExecutor(2) as threads:
        assert [one.result() for one in [threads.submit(check) for _ in range(2)]] == [True, True]


def test_single_check_has_no_company() -> None:
    """One that nobody joined had no company, also where others came before and after it."""
    turns = Turns(2)
    for _ in range(2):
        with turns.shared() as stay:
            pass
        assert not stay.company


def test_timing_is_alone() -> None:
    """Nobody shares the device with one that asked to be alone, and it waits for those who are there."""
    turns, present, seen = Turns(4), [0], []
    lock = threading.Lock()

    def check() -> None:
        with turns.shared():
            with lock:
                present[0] += 1
            time.sleep(0.02)
            with lock:
                present[0] -= 1

    def clock() -> None:
        with turns.alone():
            seen.append(present[0])
            time.sleep(0.02)
            seen.append(present[0])

    with ThreadPoolExecutor(8) as threads:
        for job in [threads.submit(work) for work in (check, clock, check, check, clock, check, clock, check)]:
            job.result()

    assert seen == [0] * 6


def test_one_who_waits_to_be_alone_goes_first() -> None:
    """A check that comes while a timing waits lets it go first."""
    turns, order = Turns(4), []
    with ThreadPoolExecutor(2) as threads:
        with turns.shared():
            timing = threads.submit(lambda: _note(turns.alone(), order, "time"))
            time.sleep(0.1)
            check = threads.submit(lambda: _note(turns.shared(), order, "check"))
            time.sleep(0.1)
        timing.result()
        check.result()

    assert order == ["time", "check"]


def _note(turn: object, order: list[str], name: str) -> None:
    with turn:  # type: ignore[attr-defined]
        order.append(name)


def test_waiting_is_taken_down() -> None:
    """Whoever waits for the device is told how long."""
    turns = Turns(2)
    with ThreadPoolExecutor(1) as threads:
        with turns.alone() as first:
            second = threads.submit(lambda: _waited(turns))
            time.sleep(0.2)
        assert second.result() >= 0.15
    assert first.waited_s < 0.1


def _waited(turns: Turns) -> float:
    with turns.shared() as stay:
        return stay.waited_s
