"""A reference that torch.compile is at work on, in a process of its own, beside whoever is timed: a limit is waited for, and no longer."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack

from tools.errors import MachineError
from tools.evaluation.processes.child import Child, DeadlineError
from tools.evaluation.processes.tensor_room import in_words
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.evaluation.wire.channel import REPLY_BYTES, Command, Order, Reply, State

COMPILE_S = 120.0
"""How long torch.compile is waited for: most references take 5 to 40 s, large networks minutes the first time."""
_AT_ONCE_S = 0.002


class Compiling:
    """A second baseline process: it compiles and launches nothing, so that nobody on the device has to wait for it."""

    def __init__(self, workers: WorkerPool, job: bytes, shared: Mapping[str, int], cancel: int, limit_s: float) -> None:
        """Start it beside others on the device; `begin` says what to do."""
        self.limit_s = limit_s
        self.stack = ExitStack()
        """What ends it; whoever takes the process over takes this too."""
        self.child: Child = self.stack.enter_context(workers.trusted("baseline", job, shared, cancel))
        self._turn = threading.Lock()
        self._reply: Reply | None = None
        self._ended = 0.0
        self._deadline = time.monotonic() + limit_s

    def begin(self, start_s: float) -> None:
        """Wait until it holds parameters and inputs, and have it compile; MachineError where it does not get there in `start_s` seconds."""
        try:
            data = self.child.receive(time.monotonic() + start_s, REPLY_BYTES)
        except DeadlineError:
            data = None
        reply = Reply.unpack(data) if data is not None else None
        if reply is None or reply.state is not State.READY:
            raise MachineError(f"The compiling process did not start: {self.last_words()}", "Check the device's memory with nvidia-smi.")
        self.child.send(Command(Order.COMPILE).pack())
        self._deadline = time.monotonic() + self.limit_s

    def wait(self) -> None:
        """Wait until it has compiled, failed or died, or until its limit is over."""
        self._look(self._deadline)

    @property
    def has_ended(self) -> bool:
        """Whether it has compiled, failed or died by now."""
        self._look(time.monotonic() + _AT_ONCE_S)
        return self._ended > 0

    @property
    def has_compiled(self) -> bool:
        """Whether it has ended well."""
        return self.has_ended and self._reply is not None and self._reply.state is State.DONE

    @property
    def is_late(self) -> bool:
        """Whether its limit was over before it ended."""
        return (self._ended or time.monotonic()) >= self._deadline

    def last_words(self) -> str:
        """What it printed last."""
        return in_words((self.child.log.text.strip().splitlines() or ["no reason given"])[-1])[:300]

    def close(self) -> None:
        """End the process."""
        with self._turn:
            self._ended = self._ended or time.monotonic()
            self.stack.close()

    def _look(self, until: float) -> None:
        with self._turn:
            if self._ended:
                return
            try:
                data = self.child.receive(until, REPLY_BYTES)
            except DeadlineError:
                return
            self._reply = Reply.unpack(data) if data is not None else None
            self._ended = time.monotonic()
