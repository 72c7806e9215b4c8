"""A zygote as the supervisor sees it: started once, asked for phases, restarted once should it die."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tools.errors import MachineError
from tools.evaluation.processes.child import Child
from tools.evaluation.processes.log import Log
from tools.evaluation.processes.zygote_ancestry import ANCESTRY, Zygote, clean_environment
from tools.evaluation.sandbox.isolation import Box
from tools.evaluation.wire import fd_messages

_ENTRY_S = 30.0


class ZygoteClient:
    """Keeps one zygote alive and forks phases from it."""

    def __init__(self, flavour: str, environment: Mapping[str, str], folder: Path, kind: str = "evaluation") -> None:
        """Prepare; the process starts at the first fork. `folder` gets each phase's scratch, `kind` says what phases do."""
        self.flavour = flavour
        self._kind = kind
        self.versions: dict[str, str] = {}
        """Of what the zygote has imported; empty until it has started."""
        self.environment = clean_environment(environment)
        """What its phases see."""
        self._folder = folder
        self._lock = threading.Lock()
        self._zygote: Zygote | None = None
        self._closed = False

    @contextmanager
    def phase(self, name: str, job: bytes, shared: Mapping[str, int], box: Box | None, cancel: int = -1) -> Iterator[Child]:
        """Fork a phase, wait until its sandbox stands, hand it over, and leave nothing of it behind."""
        scratch = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self._folder))
        if box is not None:
            box = box.model_copy(update={"scratch": str(scratch)})
            if os.geteuid() == 0:
                os.chown(scratch, box.uid, box.uid)
        child = None
        try:
            child = self._fork(name, job, shared, box, cancel, scratch)
            child.await_entry(time.monotonic() + _ENTRY_S)
            yield child
        finally:
            if child is not None:
                child.end()
            shutil.rmtree(scratch, ignore_errors=True)

    def _fork(self, name: str, job: bytes, shared: Mapping[str, int], box: Box | None, cancel: int, scratch: Path) -> Child:
        ours, theirs = fd_messages.pair()
        status, status_theirs = fd_messages.pair()
        log = Log()
        job_fd = os.memfd_create("job", os.MFD_CLOEXEC)
        child = Child(name, ours, status, log, cancel, scratch)
        try:
            with os.fdopen(os.dup(job_fd), "wb") as file:
                file.write(job)
            names = ["job", "control", "status", "log", *shared]
            descriptors = [job_fd, theirs.fileno(), status_theirs.fileno(), log.writer, *shared.values()]
            message = {"phase": name, "names": names, "box": box.model_dump_json() if box else None, "scratch": str(scratch)}
            pidfds = self._ask(message, descriptors)
        finally:
            os.close(job_fd)
            theirs.close()
            status_theirs.close()
            log.close_writer()
        for pidfd in pidfds:
            child.adopt(pidfd)
        return child

    def _ask(self, message: Mapping[str, object], descriptors: list[int]) -> list[int]:
        """Have the zygote fork; one that has died is started once more."""
        with self._lock:
            for _ in range(2):
                pidfds = self._started().ask(message, descriptors)
                if pidfds is not None:
                    return pidfds
                self._stop()
        raise MachineError(f"The {self.flavour} parent process died twice.", "Look for a kernel message (dmesg): memory may have run out.")

    def start(self) -> None:
        """Start the zygote now, so that the first phase does not wait for imports."""
        with self._lock:
            self._started()

    def _started(self) -> Zygote:
        if self._closed:
            raise MachineError("The pool has been closed.", "Make a new one.")
        if self._zygote is None:
            self._zygote = ANCESTRY.zygote(self.environment, self._kind)
            self.versions = self._zygote.versions
        return self._zygote

    def _stop(self) -> None:
        if self._zygote is not None:
            self._zygote.kill()
            self._zygote = None

    def close(self) -> None:
        """End the zygote; every phase it forked dies with it."""
        with self._lock:
            self._closed = True
            self._stop()
