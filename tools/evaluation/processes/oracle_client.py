"""The oracle servers as the supervisor sees them: one a problem, kept between candidates, and a few more where one has too much to do."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from tools.evaluation.processes.child import Child, DeadlineError
from tools.evaluation.processes.kept import LEAST
from tools.evaluation.wire.jobs.oracle_server import DONE, FAILED

_LAST_WORDS_S = 2.0

Fork = Callable[[], AbstractContextManager[Child]]


class Done(NamedTuple):
    """How a job went."""

    log: str
    ending: str
    given: tuple[int, ...] = ()
    """Descriptors that came with its end; whoever asked closes them."""


@dataclass(eq=False)
class _Server:
    """One process, if there is one now."""

    problem: str = ""
    """For which it was started."""
    stack: ExitStack = field(default_factory=ExitStack)
    child: Child | None = None
    is_busy: bool = False

    def end(self) -> None:
        self.child = None
        self.stack.close()


@dataclass(eq=False)
class _Kept:
    """The processes of one problem; the first alone has what is stored on the device."""

    servers: list[_Server] = field(default_factory=lambda: [_Server()])
    users: int = 0
    """Who works with them or waits for them."""
    pressing: int = 0
    """Who waits for inputs: a candidate's calls wait for those, and nothing waits yet for what is judged."""

    def idle(self) -> list[_Server]:
        return [one for one in self.servers if not one.is_busy]


class OracleClient:
    """The supervisor's side: keeps the processes of the last few problems; one whose job failed gets a new one."""

    def __init__(self, most: int = LEAST, more: int = 0) -> None:
        """Start with none; of `most` problems one is kept at once: those worked on side by side do not drive out each other's.

        Up to `more` further ones are started where all of a problem's are busy; those of problems that rest are taken for that.
        """
        self._most, self._more = most, more
        self._changed = threading.Condition()
        self._kept: dict[str, _Kept] = {}
        """By problem, the one used longest ago first."""

    def ask(
        self,
        fork: Fork,
        problem: str,
        name: str,
        job: bytes,
        shared: Mapping[str, int],
        deadline: float,
        cancel: int,
        *,
        is_first: bool = True,
    ) -> Done:
        """Have one job done in a process kept for `problem`, which `fork` starts: the first, or any.

        Raises DeadlineError where it takes too long. Whatever goes wrong ends the process, and those that do nothing, which may be as
        broken: the next job gets a new one.
        """
        with self.using(problem) as kept, self._turn(kept, is_first=is_first, is_pressing=name == "inputs") as one:
            if one.problem != problem:
                one.end()
                one.problem = problem
            if one.child is None:
                one.child = one.stack.enter_context(fork())
            child, reply = one.child, None
            child.watch(cancel)
            try:
                reply, given = _do(child, name, job, shared, deadline)
                return Done(child.log.text, "it raised an exception" if reply == FAILED else child.ending, tuple(given))
            finally:
                child.watch(-1)
                if reply != DONE:
                    self._end(one, kept)

    def end_resting(self) -> None:
        """End the processes of problems that nobody works on."""
        with self._changed:
            resting = [self._kept.pop(name) for name in [name for name, one in self._kept.items() if not one.users]]
        for one in resting:
            for server in one.servers:
                server.end()

    def close(self) -> None:
        """End the processes."""
        with self._changed:
            kept, self._kept = self._kept, {}
        for server in [server for one in kept.values() for server in one.servers]:
            with self._changed:
                self._changed.wait_for(partial(_if_idle, server))
                server.is_busy = True
            server.end()
            with self._changed:
                server.is_busy = False
                self._changed.notify_all()

    @contextmanager
    def using(self, problem: str) -> Iterator[_Kept]:
        """Hold the processes of a problem, which nobody drops meanwhile; those used longest ago make room."""
        with self._changed:
            one = self._kept.pop(problem) if problem in self._kept else _Kept()
            self._kept[problem] = one
            one.users += 1
            idle = [name for name, other in self._kept.items() if not other.users]
            dropped = [self._kept.pop(name) for name in idle[: max(0, len(self._kept) - self._most)]]
        try:
            for other in dropped:
                for server in other.servers:
                    server.end()
            yield one
        finally:
            with self._changed:
                one.users -= 1
                self._changed.notify_all()

    @contextmanager
    def _turn(self, kept: _Kept, *, is_first: bool, is_pressing: bool) -> Iterator[_Server]:
        """Have one of the processes to oneself, as soon as one is free and nobody presses more."""
        with self._changed:
            kept.pressing += is_pressing
            try:
                one = self._changed.wait_for(lambda: self._free(kept, is_first=is_first) if is_pressing or not kept.pressing else None)
            finally:
                kept.pressing -= is_pressing
                self._changed.notify_all()
            assert one is not None
            one.is_busy = True
        try:
            yield one
        finally:
            with self._changed:
                one.is_busy = False
                self._changed.notify_all()

    def _free(self, kept: _Kept, *, is_first: bool) -> _Server | None:
        """Choose one that does nothing, rather the last that lives, so that the first is there for what it stores; None where all work."""
        if is_first:
            return _if_idle(kept.servers[0])
        idle = kept.idle()
        if not idle and (another := self._another()) is not None:
            kept.servers.append(another)
            return another
        return max(reversed(idle), key=lambda one: one.child is not None, default=None)

    def _another(self) -> _Server | None:
        """Give a process beyond the first of each problem, or one of a problem that nobody works on; None where there is neither."""
        further = [one for one in self._kept.values() if len(one.servers) > 1]
        if sum(len(one.servers) - 1 for one in further) < self._more:
            return _Server()
        resting = next((one for one in further if not one.users), None)
        return resting.servers.pop() if resting is not None else None

    def _end(self, failed: _Server, kept: _Kept) -> None:
        """End one that failed, and the others that do nothing."""
        failed.end()
        with self._changed:
            for one in kept.idle():
                one.end()


def _if_idle(one: _Server) -> _Server | None:
    return None if one.is_busy else one


def _do(child: Child, name: str, job: bytes, shared: Mapping[str, int], deadline: float) -> tuple[bytes | None, list[int]]:
    """Hand a job over and wait for its end and what comes with it; None where the process ended."""
    child.hand(name, job, shared)
    reply, given = child.receive_given(deadline)
    if reply is None:
        with contextlib.suppress(DeadlineError):
            child.wait(time.monotonic() + _LAST_WORDS_S)
    return reply, given
