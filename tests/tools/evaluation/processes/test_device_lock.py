"""Who may use the device, and when."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tools.errors import MachineError
from tools.evaluation.processes.device_lock import DeviceLock, Stay
from tools.evaluation.processes.device_turn import DeviceTurn


def test_checks_share_and_know_it() -> None:
    """Two that share the device are there at the same time, and both know that they had company."""
    turns, meet = DeviceLock(2), threading.Barrier(2, timeout=10)

    def check() -> bool:
        with turns.shared() as stay:
            meet.wait()
            return stay.company

    with ThreadPoolExecutor(2) as threads:
        assert [one.result() for one in [threads.submit(check) for _ in range(2)]] == [True, True]


def test_single_check_has_no_company() -> None:
    """One that nobody joined had no company, also where others came before and after it."""
    turns = DeviceLock(2)
    for _ in range(2):
        with turns.shared() as stay:
            pass
        assert not stay.company


def test_what_is_too_large_together_takes_lock() -> None:
    """Those that share come to no more than the room there is, and one that is larger than all of it stays by itself."""
    turns, present, most = DeviceLock(4, room=1.0), [], []
    lock = threading.Lock()

    def check(size: float) -> None:
        with turns.shared(size):
            with lock:
                present.append(size)
                most.append(sum(present) if len(present) > 1 else 0.0)
            time.sleep(0.02)
            with lock:
                present.remove(size)

    with ThreadPoolExecutor(8) as threads:
        for job in [threads.submit(check, size) for size in (0.5, 3.0, 0.5, 0.25, 0.5, 0.25, 3.0, 0.5)]:
            job.result()

    assert 0.5 <= max(most) <= 1.0


def test_what_is_brief_takes_no_seat() -> None:
    """Who is there for a moment only comes in where all seats are taken, and keeps nobody from one."""
    turns = DeviceLock(1)
    with ThreadPoolExecutor(1) as threads, turns.shared():
        assert threads.submit(_waited, turns, is_brief=True).result(10) < 5
    with ThreadPoolExecutor(1) as threads, turns.shared(is_brief=True):
        assert threads.submit(_waited, turns).result(10) < 5


def test_what_follows_on_a_timing_goes_before_the_next() -> None:
    """Where nobody waits to be checked a timing's result need not wait for those behind it."""
    turns, order = DeviceLock(1), []
    with ThreadPoolExecutor(1) as threads:
        with turns.alone(), ExitStack() as stack:
            stack.enter_context(turns.following())
            timing = threads.submit(lambda: _note(turns.alone(), order, "next"))
            time.sleep(0.1)
            following = stack.pop_all()
        with following:
            time.sleep(0.1)
            _note(turns.shared(is_brief=True), order, "oracle")
        timing.result(10)

    assert order == ["oracle", "next"]


def test_beside_checks_it_waits_for_the_end_of_the_row() -> None:
    """Where somebody waits to be checked timings go on, and what follows on them is done beside the check."""
    turns, order = DeviceLock(1), []
    with ThreadPoolExecutor(3) as threads:
        with turns.alone(), ExitStack() as stack:
            stack.enter_context(turns.following())
            timing = threads.submit(lambda: _note(turns.alone(), order, "next"))
            time.sleep(0.1)
            check = threads.submit(lambda: _note(turns.shared(), order, "check"))
            time.sleep(0.1)
            following = stack.pop_all()
        with following:
            _note(turns.shared(is_brief=True), order, "oracle")
        check.result(10)
        timing.result(10)

    assert order[0] == "next"
    assert set(order[1:]) == {"check", "oracle"}


def test_what_fails_beside_others_is_done_again_alone() -> None:
    """A failure of the machine, or a doubted result, counts where nobody else was there."""
    turns, seen = DeviceLock(2), []

    def fails(stay: Stay) -> str:
        seen.append(stay.company)
        if stay.company:
            raise MachineError("out of memory", "wait")
        return "done"

    def doubtful(stay: Stay) -> bool:
        seen.append(stay.company)
        return not stay.company

    with ThreadPoolExecutor(1) as threads:
        for work, doubted in ((fails, lambda _: False), (doubtful, lambda found: not found)):
            with turns.shared():
                job = threads.submit(turns.beside, 0.0, work, doubted)
                time.sleep(0.1)
            assert job.result() in ("done", True)

    assert seen == [True, False, True, False]


def test_a_failure_without_company_is_one() -> None:
    """What the machine cannot do by itself is not tried again."""
    turns, tries = DeviceLock(2), []

    def fails(stay: Stay) -> None:
        tries.append(stay)
        raise MachineError("out of memory", "wait")

    with pytest.raises(MachineError):
        turns.beside(0.0, fails)
    assert len(tries) == 1


def test_timing_is_alone() -> None:
    """Nobody shares the device with one that asked to be alone, and it waits for those who are there."""
    turns, present, seen = DeviceLock(4), [0], []
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
    turns, order = DeviceLock(4), []
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
    turns = DeviceLock(2)
    with ThreadPoolExecutor(1) as threads:
        with turns.alone() as first:
            second = threads.submit(lambda: _waited(turns))
            time.sleep(0.2)
        assert second.result() >= 0.15
    assert first.waited_s < 0.1


def _waited(turns: DeviceLock, *, is_brief: bool = False) -> float:
    with turns.shared(is_brief=is_brief) as stay:
        return stay.waited_s


class Resting:
    """What notes when it rests."""

    def __init__(self) -> None:
        self.rests = False

    def pause(self) -> None:
        """Rest."""
        self.rests = True

    def resume(self) -> None:
        """Go on."""
        self.rests = False


def test_what_yields_rests_while_somebody_is_alone() -> None:
    """Whoever wants to be alone does not wait for it; it goes on afterwards, also where it came in between."""
    turns, early, late = DeviceLock(2), Resting(), Resting()
    with turns.yielding(early):
        with turns.alone():
            assert early.rests
            with turns.yielding(late):
                assert late.rests
            assert not late.rests
        assert not early.rests


def waited_for(one: Resting, *, rests: bool) -> bool:
    """Wait until it rests, or works."""
    until = time.monotonic() + 10
    while one.rests != rests and time.monotonic() < until:
        time.sleep(0.01)
    return one.rests == rests


def test_what_yields_rests_while_another_pool_times(tmp_path: Path) -> None:
    """A reference that is loaded beside others rests for as long as anybody is alone, in whichever process, and then goes on."""
    mine, theirs = (DeviceLock(2, turn=DeviceTurn(tmp_path / "device")) for _ in range(2))
    one = Resting()
    with mine.yielding(one):
        with theirs.alone():
            assert waited_for(one, rests=True)
        assert waited_for(one, rests=False)
        with mine.alone():
            assert one.rests
        assert waited_for(one, rests=False)


def test_who_waits_to_be_alone_is_in_line() -> None:
    """Those who wait to be alone are counted until their turn comes."""
    turns = DeviceLock(2)

    def time_it() -> None:
        with turns.alone():
            pass

    with turns.shared():
        waiting = [threading.Thread(target=time_it) for _ in range(2)]
        for one in waiting:
            one.start()
        while turns.in_line < 2:
            time.sleep(0.01)
    for one in waiting:
        one.join(10)
    assert turns.in_line == 0
