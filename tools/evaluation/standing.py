"""The standing oracle: one trusted process a problem that makes inputs and judges outputs on the device, kept between candidates.

It does the jobs of the phases `inputs`, `oracle` and `sentinel`, one after the other, and never meets a candidate. It is kept because a new
process needs half a second to start CUDA, four times a candidate.
"""

from __future__ import annotations

import contextlib
import gc
import os
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack

from tools.evaluation import wire
from tools.evaluation.child import Child, DeadlineError
from tools.evaluation.phases import Phase, phase_function

JOBS = ("inputs", "oracle", "sentinel")
"""The phases whose work it does."""

_DONE = b"done"
_FAILED = b"failed"
_LAST_WORDS_S = 2.0

Fork = Callable[[], AbstractContextManager[Child]]


def serve(phase: Phase) -> None:
    """Do one job after the other until the supervisor goes away; what a job held on the device is given back after it."""
    import torch

    while (request := wire.receive(phase.control)) is not None:
        message, descriptors = request
        shared = dict(zip(message["names"], descriptors, strict=True))
        with os.fdopen(shared.pop("job"), "rb") as file:
            file.seek(0)
            job = file.read()
        reply = _FAILED
        try:
            phase_function(message["phase"])(Phase(job, phase.control, shared, phase.scratch))
            reply = _DONE
        except Exception:
            traceback.print_exc(limit=-8)
        # a phase closes the memory that it maps
        os.close(shared["answer"])
        gc.collect()
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            torch.cuda.empty_cache()
        phase.control.send(reply)


class StandingOracle:
    """The supervisor's side: has the process of the last problem, and starts another when the problem changes or a job fails."""

    def __init__(self) -> None:
        """Start with none."""
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._child: Child | None = None
        self._problem = ""

    def ask(
        self, fork: Fork, problem: str, name: str, job: bytes, shared: Mapping[str, int], deadline: float, cancel: int
    ) -> tuple[str, str]:
        """Have one job done in the process kept for `problem`, which `fork` starts; return its log and how it ended.

        Raises DeadlineError where it takes too long. Whatever goes wrong ends the process: the next job gets a new one.
        """
        with self._lock:
            if self._child is None or self._problem != problem:
                self._end()
                self._child = self._stack.enter_context(fork())
                self._problem = problem
            child, reply = self._child, None
            child.watch(cancel)
            try:
                reply = _do(child, name, job, shared, deadline)
                return child.log.text, "it raised an exception" if reply == _FAILED else child.ending
            finally:
                child.watch(-1)
                if reply != _DONE:
                    self._end()

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        self._child = None
        self._stack.close()


def _do(child: Child, name: str, job: bytes, shared: Mapping[str, int], deadline: float) -> bytes | None:
    """Hand a job over and wait for its end; None where the process ended."""
    child.hand(name, job, shared)
    reply = child.receive(deadline)
    if reply is None:
        with contextlib.suppress(DeadlineError):
            child.wait(time.monotonic() + _LAST_WORDS_S)
    return reply
