"""torch.compile of a baseline: waited for within a limit, in a process of its own, and taken over when it comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from tools.evaluation.processes.child import DeadlineError
from tools.evaluation.processes.device_lock import DeviceLock, Door
from tools.evaluation.supervisor.timed.baseline_client import BaselineProcess
from tools.evaluation.wire.calls import CallPlan
from tools.evaluation.wire.channel import Command, Order, Reply, State
from tools.hardware import load_sheet


@dataclass
class Scripted:
    """A baseline process that answers at once, but compiles only when it is told to have."""

    compiled: State | None = None
    """How it answers an order to compile; None: not yet."""
    orders: list[Order] = field(default_factory=lambda: [Order.STOP])
    closed: bool = False
    rests: list[bool] = field(default_factory=list)
    log: Any = field(default_factory=lambda: SimpleNamespace(text="some reason"))

    def send(self, data: bytes) -> None:
        """Take an order."""
        self.orders.append(Command.unpack(data).order)

    def receive(self, deadline: float, limit: int = 0) -> bytes | None:
        """Answer the order that came last."""
        if self.orders[-1] is Order.STOP:
            return Reply(State.READY).pack()
        if self.orders[-1] is not Order.COMPILE:
            return Reply(State.DONE, 4.0).pack()
        if self.compiled is None:
            raise DeadlineError
        return Reply(self.compiled).pack()

    def watch(self, cancel: int) -> None:
        """Watch nothing."""

    def await_handle(self, deadline: float) -> None:
        """Be ready to be signalled."""

    def pause(self) -> None:
        """Take down that it is to rest."""
        self.rests.append(True)

    def resume(self) -> None:
        """Take down that it is to go on."""
        self.rests.append(False)


@dataclass
class Pair:
    """A baseline whose two processes are scripted."""

    baseline: BaselineProcess
    compiling: Scripted
    eager: Scripted


Make = Callable[..., Pair]


@pytest.fixture
def make() -> Make:
    """Start a baseline that waits for so many seconds."""

    def made(compiled: State | None, limit_s: float = 0.0, door: Door | None = None, kind: type[Scripted] = Scripted) -> Pair:
        compiling, eager = kind(compiled), kind()
        left = [compiling, eager]

        @contextmanager
        def trusted(*_: Any) -> Iterator[Scripted]:
            child = left.pop(0)
            yield child
            child.closed = True

        workers: Any = SimpleNamespace(trusted=trusted, wary=True)
        held: Any = SimpleNamespace(store=None, shared={}, call_plan=CallPlan(problem="", shake=None, calls=()))
        return Pair(BaselineProcess(workers, held, load_sheet("h200"), -1, compile_s=limit_s, door=door), compiling, eager)

    return made


def test_what_compiles_in_time_is_timed_from_the_start(make: Make) -> None:
    """It takes the other process's place, which ends."""
    pair = make(State.DONE, 10.0)
    pair.baseline.await_compiled()
    pair.baseline.settle()
    assert pair.baseline.names == ["eager", "compile"]
    assert (pair.eager.closed, pair.compiling.closed, pair.baseline.notes) == (True, False, [])


def test_a_late_baseline_is_named_and_joins(make: Make) -> None:
    """Beyond the limit the reference is timed eagerly and a note says so; when it has compiled, later timings have both."""
    pair = make(None)
    pair.baseline.await_compiled()
    pair.baseline.settle()
    assert pair.baseline.names == ["eager"]
    assert pair.baseline.is_slow
    assert pair.baseline.notes == ["torch.compile: not within 0 s; it joins when it comes."]
    pair.compiling.compiled = State.DONE
    pair.baseline.settle()
    assert pair.baseline.names == ["eager", "compile"]
    assert pair.baseline.is_slow
    assert pair.eager.closed


def test_what_cannot_be_compiled_is_said(make: Make) -> None:
    """The process that failed ends, and the reference goes on being timed eagerly."""
    pair = make(State.FAILED, 10.0)
    pair.baseline.await_compiled()
    pair.baseline.settle()
    assert pair.baseline.names == ["eager"]
    assert pair.baseline.notes == ["torch.compile cannot run the reference: some reason"]
    assert (pair.eager.closed, pair.compiling.closed) == (False, True)


def test_closing_ends_what_still_compiles(make: Make) -> None:
    """Nothing is left of either process."""
    pair = make(None)
    pair.baseline.close()
    assert (pair.eager.closed, pair.compiling.closed) == (True, True)


def test_what_starts_by_a_door_rests_while_anybody_is_timed(make: Make) -> None:
    """Nobody who would be alone waits for a reference to be loaded and called: both processes rest, and go on afterwards."""
    lock = DeviceLock(2)
    moments: list[list[bool]] = []

    class Watched(Scripted):
        def receive(self, deadline: float, limit: int = 0) -> bytes | None:
            with lock.alone():
                moments.append(list(self.rests))
            return super().receive(deadline, limit)

    pair = make(State.DONE, 10.0, lock.door(0.0), kind=Watched)
    assert moments[0][-1:] == [True]
    assert pair.eager.rests[-1] is pair.compiling.rests[-1] is False
    with lock.alone():
        # it compiles now, which disturbs nobody
        assert pair.compiling.rests[-1] is False
