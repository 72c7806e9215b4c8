"""A zygote as the supervisor sees it: started once, asked for phases, restarted once should it die."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tools.errors import MachineError
from tools.evaluation import wire
from tools.evaluation.child import Child
from tools.evaluation.isolation import Box
from tools.evaluation.log import Log

_START_S = 120.0
_ENTRY_S = 30.0
_BOOT = "import sys; sys.path[:0] = sys.argv[2:]; from tools.evaluation.zygote import main; main(int(sys.argv[1]))"
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


class Nursery:
    """Keeps one zygote alive and forks phases from it."""

    def __init__(self, flavour: str, environment: Mapping[str, str], folder: Path) -> None:
        """Prepare; the process starts at the first fork. `folder` gets each phase's scratch."""
        self.flavour = flavour
        self.versions: dict[str, str] = {}
        """Of what the zygote has imported; empty until it has started."""
        self.environment = clean_environment(environment)
        """What its phases see."""
        self._folder = folder
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._end: socket.socket | None = None
        self._starts = 0
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
        ours, theirs = wire.pair()
        status, status_theirs = wire.pair()
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
                end = self._started()
                try:
                    wire.send(end, message, descriptors)
                    answer = wire.receive(end)
                except OSError:
                    answer = None
                if answer is not None:
                    return answer[1]
                self._stop()
        raise MachineError(f"The {self.flavour} parent process died twice.", "Look for a kernel message (dmesg): memory may have run out.")

    def start(self) -> None:
        """Start the zygote now, so that the first phase does not wait for imports."""
        with self._lock:
            self._started()

    def _started(self) -> socket.socket:
        if self._closed:
            raise MachineError("The pool has been closed.", "Make a new one.")
        if self._end is not None:
            return self._end
        ours, theirs = wire.pair()
        roots = [path for path in sys.path if path]
        command = [sys.executable, "-I", "-B", "-c", _BOOT, str(theirs.fileno()), *roots]
        self._process = subprocess.Popen(
            command,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
            cwd="/",
        )
        theirs.close()
        ours.settimeout(_START_S)
        self._end = ours
        try:
            answer = wire.receive(ours)
        except TimeoutError:
            answer = None
        if answer is None:
            self._process.kill()
            assert self._process.stderr is not None
            reason = self._process.stderr.read().decode(errors="replace").strip()[-800:]
            self._stop()
            raise MachineError(f"The {self.flavour} parent process did not start: {reason}", "Check that torch and triton import.")
        self.versions = answer[0]["ready"]
        return ours

    def _stop(self) -> None:
        if self._end is not None:
            self._end.close()
            self._end = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stderr is not None:
                self._process.stderr.close()
            self._process = None

    def close(self) -> None:
        """End the zygote; every phase it forked dies with it."""
        with self._lock:
            self._closed = True
            self._stop()
