"""Runners that wait for a candidate: walls built, CUDA started, and no candidate code met yet. Each serves one candidate once.

Starting CUDA takes a third of a second in each process, and more side by side: the driver does it in one process after the other, on
whichever GPU. So it is started while candidates are checked, never while one is timed on that GPU, and the pools of a machine take turns.
What needs no device is done ahead, also while somebody is timed: walls, libraries, the driver's own start.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import NamedTuple

from tools.errors import MachineError
from tools.evaluation.processes.child import Child, DeadlineError
from tools.evaluation.processes.host_turn import HostTurn
from tools.evaluation.wire.jobs.runner import BEGUN, CONTEXT, START, WARM
from tools.scratch import PREFIX

_WARM_S = 60.0
_AT_ONCE = 8
"""Made at the same time."""
_CONTEXTS_AT_ONCE = 2
"""Of these make their context: the driver makes one after the other, and others' ends wait in its line."""
_AHEAD, _AHEAD_AT_ONCE = 8, 2
"""Begun ahead, and at the same time: the host of who is timed needs its cores."""
_FEW = 2
"""So many disturb no other pool for long: they wait for no turn."""
_PATIENCE_S = 6.0
"""How long a pool waits for its turn: another makes eight candidates' runners in four."""

Fork = Callable[[], AbstractContextManager[Child]]


class SpareRunner(NamedTuple):
    """A waiting runner, and what ends it."""

    child: Child
    stack: ExitStack


class SpareRunners:
    """A few waiting runners of one worker pool."""

    def __init__(self, fork: Fork, turn: HostTurn | None = None) -> None:
        """Have `fork` begin one; none is begun yet. CUDA is started in this pool's `turn` among those of the machine."""
        self._fork = fork
        self._turn = turn or HostTurn(Path(tempfile.gettempdir()) / f"{PREFIX}cuda-{os.geteuid()}.lock", _PATIENCE_S)
        self._lock, self._context = threading.Lock(), threading.BoundedSemaphore(_CONTEXTS_AT_ONCE)
        self._starters = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="spare")
        self._beginners = ThreadPoolExecutor(_AHEAD_AT_ONCE, thread_name_prefix="spare-ahead")
        self._ready: list[SpareRunner] = []
        self._begun: list[SpareRunner] = []
        """Of which CUDA is not started."""
        self._starting: list[Future[None]] = []
        self._beginning: list[Future[None]] = []
        self._closed = False
        self._count = 0
        """How many are to be ready; 0 while something is timed."""
        self._most = 0
        """How many were to be, before something was timed."""

    def take(self) -> SpareRunner | None:
        """Take one out, if there is one that lives; the taker ends it, and waits where CUDA is not started. Another is begun in its place.

        Unless something is timed CUDA is started in that one, too.
        """
        while True:
            with self._lock:
                is_ready = bool(self._ready)
                if not self._ready and not self._begun:
                    return None
                spare = (self._ready or self._begun).pop()
                self._top_up()
            if spare.child.lives() and (is_ready or (_tells(spare.child, CONTEXT, START) and _tells(spare.child, WARM))):
                return spare
            spare.stack.close()

    def refill(self, count: int) -> None:
        """Begin to make as many as are missing from `count`, and from now on whatever is taken."""
        with self._lock:
            self._count = self._most = count
            self._top_up()

    def settle(self, wanted: int = 0) -> None:
        """Start no more than are `wanted`, and wait until none is being started: something is to be timed."""
        with self._lock:
            self._count = min(self._count, wanted)
            for starting in reversed(self._starting):
                if self._missing() < 0:
                    starting.cancel()
            under_way = [starting for starting in self._starting if not starting.cancelled()]
        wait(under_way)
        with self._lock:
            self._count = 0
            self._top_up()

    def trim(self, most: int) -> None:
        """End those beyond `most` that wait with CUDA started: each holds half a gigabyte of the device."""
        with self._lock:
            self._count, self._most = min(self._count, most), min(self._most, most)
            ended, self._ready = self._ready[most:], self._ready[:most]
        for spare in ended:
            spare.stack.close()

    def close(self) -> None:
        """End all that wait; those being made end as soon as they are."""
        with self._lock:
            self._closed = True
            waiting, self._ready, self._begun = [*self._ready, *self._begun], [], []
        for threads in (self._starters, self._beginners):
            threads.shutdown(wait=False)
        for spare in waiting:
            spare.stack.close()

    def _missing(self) -> int:
        """How many are to be started yet; below 0 where more are than should."""
        return self._count - len(self._ready) - sum(not starting.done() for starting in self._starting)

    def _top_up(self) -> None:
        if self._closed:
            return
        self._starting, self._beginning = ([one for one in each if not one.done()] for each in (self._starting, self._beginning))
        for _ in range(self._missing()):
            self._starting.append(self._starters.submit(self._make))
        if not self._count:
            # the next checks will take as many as those who are timed now
            for _ in range(min(self._most, _AHEAD) - len(self._begun) - len(self._beginning)):
                self._beginning.append(self._beginners.submit(self._begin_ahead))

    def _make(self) -> None:
        """Begin one, unless one was ahead, and start CUDA in it."""
        with self._lock:
            spare = self._begun.pop() if self._begun else None
            turn = self._turn.had() if sum(not one.done() for one in self._starting) > _FEW else contextlib.nullcontext()
        spare = spare or self._one_begun()
        if spare is None:
            return
        with turn, self._context:
            has_context = _tells(spare.child, CONTEXT, START)
        self._keep(spare, self._ready if has_context and _tells(spare.child, WARM) else None)

    def _begin_ahead(self) -> None:
        spare = self._one_begun()
        if spare is not None:
            self._keep(spare, self._begun)

    def _keep(self, spare: SpareRunner, among: list[SpareRunner] | None) -> None:
        with self._lock:
            if among is not None and not self._closed:
                among.append(spare)
                return
        spare.stack.close()

    def _one_begun(self) -> SpareRunner | None:
        # a machine that cannot make a spare is found out by whoever needs a runner
        with contextlib.suppress(MachineError, DeadlineError), ExitStack() as stack:
            if self._closed:
                return None
            child = stack.enter_context(self._fork())
            if _tells(child, BEGUN):
                return SpareRunner(child, stack.pop_all())
        return None


def _tells(child: Child, wanted: bytes, told: bytes = b"") -> bool:
    """Wait until a runner says that it is so far, once it was `told` to go on; False where it says something else."""
    if told:
        child.send(told)
    with contextlib.suppress(DeadlineError):
        return child.receive(time.monotonic() + _WARM_S) == wanted
    return False
