"""The processes that zygotes are forked from: torch is imported once a supervisor, however many pools, devices and flavours it has.

The first has imported what every zygote has; one for each environment was forked from it and has warmed up there; and from that one each
pool gets a zygote of its own, in milliseconds. All end with the supervisor.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence

from tools.errors import MachineError
from tools.evaluation.processes.huge_pages import BORN_HUGE
from tools.evaluation.wire import fd_messages

_START_S = 120.0
_GRACE_S = 30.0
_BOOT = "import sys; sys.path[:0] = sys.argv[2:]; from tools.evaluation.processes.zygote import main; main(int(sys.argv[1]))"
_INHERITED = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ", "CUDA_HOME", "CUDA_PATH", "CC", "CXX")
"""What a process needs of the user's environment; keys and tokens are not among it."""
_FIXED = {
    # a library's threads at import would make forking unsafe
    "OPENBLAS_NUM_THREADS": "1",
    # Triton's present default, said aloud: it is to change
    "TRITON_DEFAULT_FP_FUSION": "1",
}


def clean_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Make an environment from an allow list and `extra`."""
    kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return kept | _FIXED | dict(extra)


class Zygote:
    """A process that forks on request, as the supervisor sees it; several threads may ask."""

    def __init__(self, end: socket.socket, pidfd: int, versions: Mapping[str, str], process: subprocess.Popen[bytes] | None = None) -> None:
        """Take over the two by which it is asked and ended, and the `process` where it is a child of this one."""
        self.versions = dict(versions)
        """Of what it has imported."""
        self._end = end
        self._pidfd = pidfd
        self._process = process
        self._lock = threading.Lock()

    def ask(self, message: Mapping[str, object], descriptors: Sequence[int] = ()) -> list[int] | None:
        """Have it fork, and return the child's descriptor; an empty list where that has ended already, None where the zygote itself has."""
        with self._lock:
            try:
                fd_messages.send(self._end, message, list(descriptors))
                answer = fd_messages.receive(self._end)
            except OSError:
                return None
        return answer[1] if answer else None

    def branch(self, environment: Mapping[str, str], warm: str = "") -> Zygote | None:
        """Fork another zygote, which takes over what is imported here and warms up for a kind of work; None where this one has ended.

        One that does not start raises MachineError with what it said.
        """
        ours, theirs = fd_messages.pair()
        with theirs:
            given = self.ask({"zygote": dict(environment), "warm": warm}, [theirs.fileno()])
        if given is None:
            ours.close()
            return None
        found = Zygote(ours, given[0] if given else -1, self.versions)
        if reason := found.await_start():
            raise _not_started(reason)
        return found

    def await_start(self) -> str:
        """Wait until it is ready; say why where it does not get there, and end it."""
        self._end.settimeout(_START_S)
        answer = None
        with contextlib.suppress(OSError):
            answer = fd_messages.receive(self._end)
        told = answer[0] if answer else {}
        if "ready" not in told:
            self.kill()
            return str(told.get("failed", f"no answer within {_START_S:.0f} s, or it has died"))
        self.versions |= told["ready"]
        return ""

    def kill(self) -> None:
        """End it, and with it all that it has forked; returns when it is gone."""
        with self._lock:
            self._end.close()
            if self._pidfd < 0:
                return
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            poller = select.poll()
            poller.register(self._pidfd, select.POLLIN)
            poller.poll(_GRACE_S * 1000)
            if self._process is not None:
                self._process.wait()
            os.close(self._pidfd)
            self._pidfd = -1


class Ancestry:
    """The parents of all zygotes of this process, each started at its first use."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._kept: dict[str, Zygote] = {}

    def zygote(self, environment: Mapping[str, str], kind: str = "evaluation") -> Zygote:
        """Fork a zygote that is warm in `environment` for a kind of work; MachineError where none starts. Several threads may ask."""
        base, roots = clean_environment({}), tuple(path for path in sys.path if path)

        def first() -> Zygote:
            return self._keep(f"{os.getpid()} {roots} {base}", lambda: _first(base, roots))

        def warm() -> Zygote:
            return self._keep(f"{os.getpid()} {roots} {base} {environment} {kind}", lambda: self._branch(first, environment, kind))

        return self._branch(warm, environment)

    def close(self) -> None:
        """End those that this process has started, the youngest first so that each is seen to be gone; zygotes end with them."""
        for name, one in reversed([*self._kept.items()]):
            if name.startswith(f"{os.getpid()} "):
                self._forget(one)

    def _branch(self, parent: Callable[[], Zygote], environment: Mapping[str, str], warm: str = "") -> Zygote:
        """Fork from a parent; one that has died is started once more."""
        for _ in range(2):
            one = parent()
            found = one.branch(environment, warm)
            if found is not None:
                return found
            self._forget(one)
        raise MachineError("The evaluator's parent process died twice.", "Look for a kernel message (dmesg): memory may have run out.")

    def _keep(self, name: str, make: Callable[[], Zygote]) -> Zygote:
        """Make one, or give back the one that was made; different ones are made side by side."""
        with self._lock:
            turn = self._locks.setdefault(name, threading.Lock())
        with turn:
            found = self._kept.get(name)
            if found is None:
                found = make()
                with self._lock:
                    self._kept[name] = found
            return found

    def _forget(self, one: Zygote) -> None:
        with self._lock:
            self._kept = {name: other for name, other in self._kept.items() if other is not one}
        one.kill()


ANCESTRY = Ancestry()
"""This process's."""
atexit.register(ANCESTRY.close)


def _first(environment: Mapping[str, str], roots: Sequence[str]) -> Zygote:
    """Start the one that has imported torch and nothing that depends on an environment."""
    ours, theirs = fd_messages.pair()
    # a file, which never fills up as a pipe does that nobody reads
    with theirs, tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [sys.executable, "-I", "-B", "-c", _BOOT, str(theirs.fileno()), *roots],
            env=dict(environment) | BORN_HUGE,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
            cwd="/",
        )
        theirs.close()
        found = Zygote(ours, os.pidfd_open(process.pid), {}, process)
        if reason := found.await_start():
            said.seek(0)
            raise _not_started(said.read().decode(errors="replace") or reason)
        return found


def _not_started(reason: str) -> MachineError:
    return MachineError(f"The evaluator's parent process did not start: {reason.strip()[-800:]}", "Check that torch and triton import.")
