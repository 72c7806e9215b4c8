"""One forked phase as the supervisor sees it: messages, a log, a deadline, and an end that leaves nothing."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tools.errors import MachineError
from tools.evaluation.processes.log import Log
from tools.evaluation.processes.zygote import ENTERED
from tools.evaluation.wire import fd_messages

_GRACE_S = 30.0
"""How long the kernel may take to end a killed process before the machine is called broken; a busy GPU takes seconds."""


class DeadlineError(Exception):
    """The phase did not answer in time."""


class CancelledError(Exception):
    """Whoever asked for the evaluation no longer wants it."""


class Child:
    """A phase in flight."""

    def __init__(self, phase: str, control: socket.socket, status: socket.socket, log: Log, cancel: int, scratch: Path) -> None:
        """Watch over a phase that a zygote was asked to fork; `cancel` is a descriptor that turns readable to give up."""
        self.phase = phase
        self.log = log
        self.scratch = scratch
        self.exit_code: int | None = None
        """Signal (negative) or status it ended with; for people to read."""
        self._control = control
        self._status = status
        self._cancel = cancel
        self._pidfds: list[int] = []
        self._inner: int | None = None
        self._ended = False
        self._refused = ""

    def adopt(self, pidfd: int) -> None:
        """Keep the warden's descriptor, to end it should it fail its duty."""
        self._pidfds.append(pidfd)

    @property
    def pid(self) -> int:
        """Of the process above everything that the phase runs; 0 where it has ended."""
        try:
            words = Path(f"/proc/self/fdinfo/{self._pidfds[0]}").read_text().split()
            return max(0, int(words[words.index("Pid:") + 1]))
        except (OSError, ValueError, IndexError):
            return 0

    def watch(self, cancel: int) -> None:
        """Give up when another descriptor turns readable, from now on; -1 for none."""
        self._cancel = cancel

    def await_entry(self, deadline: float) -> None:
        """Wait until the sandbox stands; raise MachineError where it does not."""
        try:
            message = self.receive(deadline)
        except DeadlineError:
            message = None
        if message != ENTERED:
            self.end()
            reason = self._refused or self.log.text.strip()[-500:] or "no reason given"
            raise MachineError(f"The {self.phase} process could not enter its sandbox: {reason}.", "Run `kernelwright doctor`.")

    def send(self, data: bytes) -> None:
        """Send one message; a child that is gone is noticed at the next `receive`."""
        try:
            self._control.send(data)
        except OSError:
            return

    def hand(self, name: str, job: bytes, shared: Mapping[str, int]) -> None:
        """Give a job and the memory it needs to a child that waits for one; one that is gone is noticed at the next `receive`."""
        given = os.memfd_create("job", os.MFD_CLOEXEC)
        try:
            with os.fdopen(os.dup(given), "wb") as file:
                file.write(job)
            with contextlib.suppress(OSError):
                fd_messages.send(self._control, {"phase": name, "names": ["job", *shared]}, [given, *shared.values()])
        finally:
            os.close(given)

    def receive(self, deadline: float, limit: int = 4096) -> bytes | None:
        """Wait for its next message; None where it ended without one. Descriptors that come with it are left to the kernel."""
        return self._next(deadline, lambda: self._control.recv(limit))

    def receive_given(self, deadline: float, limit: int = 4096) -> tuple[bytes | None, list[int]]:
        """Wait for the next message of a child that is trusted, and take the descriptors that come with it."""
        given: list[int] = []

        def take() -> bytes:
            data, descriptors, _, _ = socket.recv_fds(self._control, limit, fd_messages.MAX_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
            given.extend(descriptors)
            return data

        return self._next(deadline, take), given

    def _next(self, deadline: float, take: Callable[[], bytes]) -> bytes | None:
        while True:
            ready = self._poll(deadline, self._control.fileno())
            if self._control.fileno() in ready:
                try:
                    data = take()
                except ConnectionResetError:
                    data = b""
                return data or None

    def wait(self, deadline: float) -> None:
        """Wait until it has ended by itself and nothing of it is left."""
        while not self._ended:
            self._poll(deadline)

    def end(self) -> None:
        """Kill it and everything it started, and wait until the kernel confirms."""
        self._kill(self._inner)
        deadline = time.monotonic() + _GRACE_S
        self._cancel = -1
        try:
            while not self._ended:
                self._poll(deadline)
                self._kill(self._inner)
        except DeadlineError:
            for pidfd in self._pidfds:
                self._kill(pidfd)
            raise MachineError(
                f"The {self.phase} process did not die within {_GRACE_S:.0f} s of SIGKILL.",
                "Check the device with nvidia-smi; it may need a reset.",
            ) from None
        finally:
            self._close()

    def await_handle(self, deadline: float) -> None:
        """Wait until it can be signalled; one that has ended by then cannot be, and need not."""
        while self._inner is None and not self._ended:
            self._poll(deadline)

    def pause(self) -> None:
        """Stop the phase itself until `resume`; another thread may wait for it meanwhile."""
        self._signal(self._inner, signal.SIGSTOP)

    def resume(self) -> None:
        """Have it go on."""
        self._signal(self._inner, signal.SIGCONT)

    def lives(self) -> bool:
        """Say whether it is still there."""
        with contextlib.suppress(DeadlineError):
            while not self._ended:
                self._poll(time.monotonic() + 0.001)
        return not self._ended

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        if self.exit_code is None:
            return "it ended"
        if self.exit_code < 0:
            return f"it died of {signal.Signals(-self.exit_code).name}"
        return f"it ended with status {self.exit_code}"

    def _poll(self, deadline: float, *wanted: int) -> set[int]:
        """Serve the log and the status socket once; return the wanted descriptors that are ready."""
        poller = select.poll()
        for fd in (*wanted, self.log.reader, self._status.fileno(), self._cancel):
            if fd >= 0:
                poller.register(fd, select.POLLIN)
        left = deadline - time.monotonic()
        if left <= 0:
            raise DeadlineError
        ready = {fd for fd, _ in poller.poll(max(1, int(left * 1000)))}
        if self._cancel in ready:
            raise CancelledError
        if self.log.reader in ready and not self.log.drain():
            self.log.close()
        if self._status.fileno() in ready:
            self._read_status()
        if not ready and time.monotonic() >= deadline:
            raise DeadlineError
        return ready

    def _read_status(self) -> None:
        answer = fd_messages.receive(self._status)
        if answer is None:
            self._finish()
            return
        message, descriptors = answer
        self._pidfds += descriptors
        if "pid" in message and descriptors:
            self._inner = descriptors[0]
        self._refused = message.get("refused", self._refused)
        if "exit" in message:
            self.exit_code = message["exit"]
            self._finish()

    def _finish(self) -> None:
        """The warden has said, or closed its end: the process namespace, or the whole tree, is gone."""
        self._ended = True
        self._status.close()
        while self.log.reader >= 0:
            ready = select.select([self.log.reader], [], [], 0)[0]
            if not ready or not self.log.drain():
                break

    def _kill(self, pidfd: int | None) -> None:
        self._signal(pidfd, signal.SIGKILL)

    def _signal(self, pidfd: int | None, number: signal.Signals) -> None:
        if pidfd is None:
            return
        try:
            signal.pidfd_send_signal(pidfd, number)
        except (ProcessLookupError, OSError):
            return

    def _close(self) -> None:
        for fd in self._pidfds:
            os.close(fd)
        self._pidfds = []
        self._inner = None
        self._control.close()
        self.log.close()
        if self._status.fileno() >= 0:
            self._status.close()
