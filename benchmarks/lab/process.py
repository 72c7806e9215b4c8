"""Processes that answer one question at a time and can be ended at any moment, whatever they are doing."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

from tools.errors import MachineError

_END_S = 3.0
"""For how long the death of killed processes is waited for."""
_starting = threading.Lock()


class HelperDied(Exception):  # noqa: N818 - it says what became of a helper, and whoever asked decides whose error that is
    """A helper ended without an answer; the next question starts another."""

    def __init__(self, *, hung: bool) -> None:
        """`hung`: it was ended because it took too long."""
        super().__init__("took too long" if hung else "died")
        self.hung = hung


class Helper:
    """One process, started when it is first asked, and again after it has died or hung. One thread at a time may ask."""

    def __init__(self, serve: Callable[..., None], arguments: Sequence[Any], environment: Mapping[str, str]) -> None:
        """Have `serve(channel, *arguments)` answer, in a process that begins with the variables of `environment`; start nothing yet."""
        self._serve, self._arguments, self._environment = serve, tuple(arguments), dict(environment)
        self._turn = threading.Lock()
        self._process: Any = None
        self._channel: Connection | None = None
        self._ended = False

    def ask(self, question: Any, limit_s: float) -> Any:
        """Return the first answer; raise HelperDied where there is none within `limit_s` seconds, MachineError after `end`."""
        channel = self._channel or self._start()
        try:
            channel.send(question)
        except OSError:
            raise self._died(hung=False) from None
        return self.more(limit_s)

    def more(self, limit_s: float) -> Any:
        """Return the next answer to the same question, as `ask` does."""
        assert self._channel is not None
        try:
            if self._channel.poll(limit_s):
                return self._channel.recv()
        except (EOFError, OSError):
            raise self._died(hung=False) from None
        raise self._died(hung=True)

    def stop(self) -> None:
        """End the process; the next question starts another."""
        with self._turn:
            _kill(self._process)
            if self._channel is not None:
                self._channel.close()
            self._process = self._channel = None

    def end(self) -> None:
        """Kill it for good, and wait for nothing: whoever is asking it gets a MachineError."""
        with self._turn:
            self._ended = True
            _kill(self._process)

    def wait(self, until: float) -> None:
        """Wait for the death of an ended one, up to a moment of the monotonic clock."""
        process = self._process
        if process is not None:
            process.join(max(0.0, until - time.monotonic()))

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        mine, theirs = context.Pipe()
        with self._turn:
            if self._ended:
                raise _over()
            self._process = context.Process(target=_begin, args=(self._serve, theirs, self._arguments), daemon=True)
            with _starting, _with_variables(self._environment):
                self._process.start()
            self._channel = mine
        theirs.close()
        return mine

    def _died(self, *, hung: bool) -> Exception:
        process = self._process
        if not hung and process is not None:
            process.join(_END_S)
            # the alarm of benchmarks.lab.device_lock: it held the device for too long
            hung = process.exitcode == -signal.SIGALRM
        self.stop()
        return _over() if self._ended else HelperDied(hung=hung)


class HelperPool:
    """Several helpers of one kind."""

    def __init__(self, count: int, serve: Callable[..., None], arguments: Sequence[Any], environment: Mapping[str, str]) -> None:
        """Have at most `count` processes."""
        self._helpers = [Helper(serve, arguments, environment) for _ in range(count)]
        # the one that was used last is taken first: those beyond what is needed are never started
        self._free: queue.LifoQueue[Helper] = queue.LifoQueue()
        for helper in self._helpers:
            self._free.put(helper)

    @contextlib.contextmanager
    def borrowed(self) -> Iterator[Helper]:
        """Wait for one that is free, and have it to oneself."""
        helper = self._free.get()
        try:
            yield helper
        finally:
            self._free.put(helper)

    def end(self) -> None:
        """Kill all of them for good, at once."""
        for helper in self._helpers:
            helper.end()

    def wait(self, until: float) -> None:
        """Wait for their deaths."""
        for helper in self._helpers:
            helper.wait(until)


def end_all(pools: Sequence[HelperPool]) -> None:
    """Kill every process of every pool, then wait a moment for their deaths."""
    for pool in pools:
        pool.end()
    until = time.monotonic() + _END_S
    for pool in pools:
        pool.wait(until)


def _begin(serve: Callable[..., None], channel: Connection, arguments: Sequence[Any]) -> None:
    """In the process: be a group of its own, so that assemblers that it started are killed with it, and Ctrl-C is the parent's."""
    os.setpgid(0, 0)
    with contextlib.suppress(EOFError, OSError):
        serve(channel, *arguments)


def _kill(process: Any) -> None:
    if process is None:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def _over() -> MachineError:
    return MachineError("The lab was ended.", "Start it again; what it had judged is kept.")


@contextlib.contextmanager
def _with_variables(wanted: Mapping[str, str]) -> Iterator[None]:
    """Have a process that is started here begin with these variables."""
    before = {name: os.environ.get(name) for name in wanted}
    os.environ |= wanted
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
