"""Runners that wait: when others are begun, and CUDA is started in them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from tools.evaluation.processes.child import Child
from tools.evaluation.processes.host_turn import HostTurn
from tools.evaluation.processes.spare_runners import SpareRunners
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.evaluation.wire.channel import Reply, State
from tools.evaluation.wire.jobs.runner import BEGUN, CONTEXT, START, WARM


class Waiting:
    """Stands for a runner, and starts CUDA as soon as it may."""

    def __init__(self, may_start: threading.Event) -> None:
        self.was_told, self._says, self._may_start = False, [BEGUN, CONTEXT, WARM], may_start

    def send(self, data: bytes) -> None:
        """Be told to start CUDA."""
        self.was_told = True

    def receive(self, deadline: float) -> bytes:
        """Say how far it is."""
        assert not self.was_told or self._may_start.wait(10)
        return self._says.pop(0)

    def lives(self) -> bool:
        """Say so."""
        return True


class Made:
    """Spare runners that count who was made."""

    def __init__(self, folder: Path) -> None:
        self.all: list[Waiting] = []
        self.may_start = threading.Event()
        self.may_start.set()
        self.spares = SpareRunners(cast("Callable[[], Any]", self._fork), HostTurn(folder / "turn", 0.0))

    @contextmanager
    def _fork(self) -> Iterator[Child]:
        self.all.append(Waiting(self.may_start))
        yield cast("Child", self.all[-1])

    def counts(self) -> tuple[int, int]:
        """Wait for those being made, and give the number of all, and of those in which CUDA was started."""
        while under_way := [one for one in (*self.spares._starting, *self.spares._beginning) if not one.done()]:
            wait(under_way, timeout=10)
        return len(self.all), sum(one.was_told for one in self.all)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Made]:
    """Spares of their own for each test."""
    one = Made(tmp_path)
    yield one
    one.spares.close()


def test_who_is_taken_is_replaced(made: Made) -> None:
    """While candidates are checked as many wait as should, whoever takes one."""
    made.spares.refill(2)
    assert made.counts() == (2, 2)
    assert made.spares.take() is not None
    assert made.counts() == (3, 3)


def test_cuda_is_not_started_while_something_is_timed(made: Made) -> None:
    """From the moment in which the device has settled until it is shared again, whoever is taken is replaced by one that is only begun."""
    made.spares.refill(2)
    made.counts()
    made.spares.settle()
    assert made.spares.take() is not None
    assert made.counts()[1] == 2
    made.spares.refill(2)
    assert made.counts()[1] == 3


def test_next_checks_find_walls_built(made: Made) -> None:
    """While something is timed as many are begun as will be wanted after it."""
    made.spares.refill(2)
    made.counts()
    made.spares.settle()
    made.spares.take()
    assert made.counts() == (4, 2)
    made.spares.refill(2)
    assert made.counts() == (4, 3)


def test_one_that_is_only_begun_starts_cuda_for_its_taker(made: Made) -> None:
    """Who finds none ready has one start CUDA that has built its walls."""
    made.spares.refill(1)
    made.counts()
    made.spares.settle()
    assert made.spares.take() is not None
    made.counts()
    taken = made.spares.take()
    assert taken is not None
    assert cast("Waiting", taken.child).was_told


def test_timing_waits_for_those_it_needs_alone(made: Made) -> None:
    """Of those that are not begun yet none is started when something is to be timed, but for as many as are wanted."""
    made.may_start.clear()
    made.spares.refill(20)
    settling = threading.Thread(target=made.spares.settle, args=(10,))
    settling.start()
    while made.spares._count != 10:
        pass
    made.may_start.set()
    settling.join(10)
    assert sum(one.was_told for one in made.all) == 10


def test_those_beyond_a_few_give_the_device_back(made: Made) -> None:
    """Of runners that wait with CUDA started some are ended, and none takes their place before as many are wanted again."""
    made.spares.refill(4)
    assert made.counts() == (4, 4)
    made.spares.trim(1)
    assert made.counts() == (4, 4)
    assert made.spares.take()
    assert made.counts() == (5, 5)
    made.spares.refill(2)
    assert made.counts() == (6, 6)


def test_a_closed_pool_makes_none(made: Made) -> None:
    """Whoever asks once it is closed finds none, and none is made."""
    made.spares.close()
    made.spares.refill(2)
    assert made.spares.take() is None
    assert made.counts() == (0, 0)


def test_a_runner_touches_no_device_before_it_is_told(tmp_path: Path) -> None:
    """A runner that is to wait says that it has begun where there is no device, and fails as soon as it needs one."""
    workers = WorkerPool(tmp_path, None)
    try:
        with workers.untrusted(workers.native, "runner", WARM, {}, gpu=False, cancel=-1) as child:
            assert child.receive(time.monotonic() + 60) == BEGUN
            child.send(START)
            answer = child.receive(time.monotonic() + 60)
        assert answer is not None
        assert Reply.unpack(answer) == Reply(State.FAILED)
    finally:
        workers.close()
