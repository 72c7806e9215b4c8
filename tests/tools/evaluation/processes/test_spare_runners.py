"""Runners that wait: when others are begun."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, cast

import pytest

from tools.evaluation.processes.child import Child
from tools.evaluation.processes.spare_runners import SpareRunners
from tools.evaluation.wire.jobs.runner import WARM


class Waiting:
    """Stands for a runner that has started CUDA."""

    def receive(self, deadline: float) -> bytes:
        """Say that it has."""
        return WARM

    def lives(self) -> bool:
        """Say so."""
        return True


class Made:
    """Spare runners that count who was made."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self.threads, self.count = threads, 0
        self.spares = SpareRunners(cast("Callable[[], Any]", self._fork))

    @contextmanager
    def _fork(self) -> Iterator[Child]:
        self.count += 1
        yield cast("Child", Waiting())

    def all_made(self) -> int:
        """Wait for those being made, and give the number of all."""
        while self.spares._making and not all(making.done() for making in self.spares._making):
            pass
        return self.count


@pytest.fixture
def made() -> Iterator[Made]:
    """Spares of their own for each test."""
    with ThreadPoolExecutor(1) as threads:
        yield Made(threads)


def test_who_is_taken_is_replaced(made: Made) -> None:
    """While candidates are checked as many wait as should, whoever takes one."""
    made.spares.refill(2, made.threads)
    assert made.all_made() == 2
    assert made.spares.take() is not None
    assert made.all_made() == 3


def test_none_is_begun_while_something_is_timed(made: Made) -> None:
    """From the moment in which the device has settled until it is shared again, those that wait have to do."""
    made.spares.refill(2, made.threads)
    made.all_made()
    made.spares.settle()
    assert [made.spares.take() is not None for _ in range(3)] == [True, True, False]
    assert made.all_made() == 2
    made.spares.refill(2, made.threads)
    assert made.all_made() == 4
