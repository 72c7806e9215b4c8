"""The trusted parent of every phase: has imported torch and triton, never touched CUDA, and forks on request.

It reads no job and holds no secret, so nothing of one evaluation is in the memory of the next. It has one thread, and it
ends when its own parent does. Zygotes are forked from one another: the first has imported torch, the next have warmed up
in an environment (ancestry.py).
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from tools.evaluation.processes import huge_pages
from tools.evaluation.processes.phase_table import import_common, run, warm_up
from tools.evaluation.sandbox import syscalls
from tools.evaluation.sandbox.enter import enter, unshare
from tools.evaluation.sandbox.isolation import Box
from tools.evaluation.wire import fd_messages
from tools.evaluation.wire.defences import NONE, Defence
from tools.evaluation.wire.phase import Phase

ENTERED = b"entered"
"""First message of every phase: the walls stand, and only now may candidate code run."""

_OFTEN = 32
"""So many forks pay for huge pages: these take 0.2 s once and save 7 ms in every phase, of 270 MB and on two cores."""


def main(socket_fd: int) -> None:
    """Be the first: import what all need, say so, then fork on request until the supervisor goes away."""
    # while it imports it looks at nothing; who has started it waits for that in the same thread, so that only its death ends this
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    end = socket.socket(fileno=socket_fd)
    if not _hung_up(end):
        _live(end, _import_first)
    # what lies in memory need not be tidied up, which takes seconds where others compute
    os._exit(0)


def _import_first() -> dict[str, str]:
    versions = import_common()
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, 0)
    return versions


def _hung_up(end: socket.socket) -> bool:
    """Whether the other side has ended before this one began to listen."""
    poller = select.poll()
    poller.register(end, 0)
    return bool(poller.poll(0))


def _live(end: socket.socket, warm: Callable[[], dict[str, str]]) -> None:
    """Get `warm`, say with which versions, and fork a phase or a zygote for each request."""
    parent = os.pidfd_open(os.getppid())
    # what is imported stays: looking for garbage in it would only take time, here and, were it not set apart, in every phase
    gc.disable()
    versions = warm()
    gc.freeze()
    gc.enable()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    fd_messages.send(end, {"ready": versions})
    poller = select.poll()
    poller.register(end, select.POLLIN)
    poller.register(parent, select.POLLIN)
    for number in count(1):
        ready = dict(poller.poll())
        if parent in ready:
            return
        request = fd_messages.receive(end)
        if request is None:
            return
        _fork(end, *request)
        if number == _OFTEN:
            huge_pages.collapse()


def _fork(end: socket.socket, message: dict[str, Any], descriptors: list[int]) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            end.close()
            if "zygote" in message:
                _branch(message, descriptors)
            else:
                warden(message, descriptors)
        finally:
            os._exit(1)
    for fd in descriptors:
        os.close(fd)
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        # it has ended already: the supervisor reads that from the socket it gave it
        fd_messages.send(end, {"forked": pid})
        return
    try:
        fd_messages.send(end, {"forked": pid}, [handle])
    finally:
        # the supervisor has its own now; one kept for each phase would fill this process's table
        os.close(handle)


def _branch(message: dict[str, Any], descriptors: list[int]) -> None:
    """Be another zygote, in an environment of its own; say why where that fails."""
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    end = socket.socket(fileno=descriptors[0])
    try:
        _close_all_but({0, 1, 2, end.fileno()})
        os.setsid()
        os.environ.clear()
        os.environ.update(message["zygote"])
        # warming up takes children that are waited for
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _live(end, partial(warm_up, message["warm"]) if message["warm"] else dict)
    except BaseException:
        fd_messages.send(end, {"failed": traceback.format_exc()[-2000:]})
    finally:
        os._exit(0)


def warden(message: dict[str, Any], descriptors: list[int]) -> None:
    """Fork the phase itself into its namespaces, wait for it, end what it left, and report how it ended."""
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    named = dict(zip(message["names"], descriptors, strict=True))
    status = socket.socket(fileno=named.pop("status"))
    box = Box.model_validate_json(message["box"]) if message["box"] else None
    try:
        if box:
            unshare(box)
    except OSError as error:
        fd_messages.send(status, {"refused": str(error)})
        os._exit(0)
    pid = os.fork()
    if pid == 0:
        status.close()
        _inner(message["phase"], named, box, message["scratch"])
    for fd in named.values():
        os.close(fd)
    fd_messages.send(status, {"pid": pid}, [os.pidfd_open(pid)])
    _, code = os.waitpid(pid, 0)
    if Defence.END_OF_TREE not in (box.missing if box else NONE):
        end_descendants()
    fd_messages.send(status, {"exit": os.waitstatus_to_exitcode(code)})
    os._exit(0)


def end_descendants() -> None:
    """Kill and reap every process below this one; in a process namespace of their own none are left by now."""
    while True:
        children = [pid for pid, parent in _parents().items() if parent == os.getpid()]
        if not children:
            return
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        for pid in children:
            os.waitpid(pid, 0)


def _parents() -> dict[int, int]:
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            found[int(folder.name)] = int((folder / "stat").read_bytes().rpartition(b")")[2].split()[1])
        except OSError:
            continue
    return found


def _inner(phase: str, named: dict[str, int], box: Box | None, folder: str) -> None:
    """Take the descriptors, enter the sandbox and say so, run the phase; never return."""
    code = 1
    try:
        log = named.pop("log")
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        if Defence.CLOSED_DESCRIPTORS not in (box.missing if box else NONE):
            _close_all_but({0, 1, 2, *named.values()})
        sys.stdout = os.fdopen(1, "w", buffering=1, errors="replace", closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, errors="replace", closefd=False)
        with os.fdopen(named.pop("job"), "rb") as file:
            file.seek(0)
            job = file.read()
        control = socket.socket(fileno=named.pop("control"))
        scratch = enter(box) if box else _trusted_scratch(Path(folder))
        # until here no candidate code has run: whatever fails before this message is the machine's fault
        control.send(ENTERED)
        run(phase, Phase(job, control, named, scratch))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        threading.excepthook = lambda _: None
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def _trusted_scratch(folder: Path) -> Path:
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    return folder


def _close_all_but(keep: set[int]) -> None:
    for fd in sorted(int(entry.name) for entry in Path("/proc/self/fd").iterdir()):
        if fd not in keep:
            try:
                os.close(fd)
            except OSError:
                continue


if __name__ == "__main__":
    main(int(sys.argv[1]))
