"""The oracle servers as the supervisor sees them: one a problem, kept between candidates."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
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
class _Kept:
    """The process of one problem, if it has one now."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    stack: ExitStack = field(default_factory=ExitStack)
    child: Child | None = None
    users: int = 0
    """Who works with it or waits for it; guarded by the lock of them all."""

    def end(self) -> None:
        self.child = None
        self.stack.close()


class OracleClient:
    """The supervisor's side: keeps the processes of the last few problems; one whose job failed gets a new one."""

    def __init__(self, most: int = LEAST) -> None:
        """Start with none; `most` are kept at once: problems worked on side by side do not drive out each other's."""
        self._most = most
        self._lock = threading.Lock()
        self._kept: dict[str, _Kept] = {}
        """By problem, the one used longest ago first."""

    def ask(self, fork: Fork, problem: str, name: str, job: bytes, shared: Mapping[str, int], deadline: float, cancel: int) -> Done:
        """Have one job done in the process kept for `problem`, which `fork` starts.

        Raises DeadlineError where it takes too long. Whatever goes wrong ends the process: the next job gets a new one.
        """
        with self.using(problem) as one, one.lock:
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
                    one.end()

    def close(self) -> None:
        """End the processes."""
        with self._lock:
            kept, self._kept = self._kept, {}
        for one in kept.values():
            with one.lock:
                one.end()

    @contextmanager
    def using(self, problem: str) -> Iterator[_Kept]:
        """Hold the process of a problem, which nobody drops meanwhile; those used longest ago make room."""
        with self._lock:
            one = self._kept.pop(problem) if problem in self._kept else _Kept()
            self._kept[problem] = one
            one.users += 1
            idle = [name for name, other in self._kept.items() if not other.users]
            dropped = [self._kept.pop(name) for name in idle[: max(0, len(self._kept) - self._most)]]
        try:
            for other in dropped:
                other.end()
            yield one
        finally:
            with self._lock:
                one.users -= 1


def _do(child: Child, name: str, job: bytes, shared: Mapping[str, int], deadline: float) -> tuple[bytes | None, list[int]]:
    """Hand a job over and wait for its end and what comes with it; None where the process ended."""
    child.hand(name, job, shared)
    reply, given = child.receive_given(deadline)
    if reply is None:
        with contextlib.suppress(DeadlineError):
            child.wait(time.monotonic() + _LAST_WORDS_S)
    return reply, given
