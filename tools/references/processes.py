"""The processes in which references are read and traced: forked when asked, ended at their limit, as many at once as are asked for."""

from __future__ import annotations

import atexit
import os
import threading
import time
from pathlib import Path
from typing import NamedTuple

from tools.errors import MachineError
from tools.evaluation.processes.child import DeadlineError
from tools.evaluation.processes.zygote_client import ZygoteClient
from tools.scratch import PREFIX, remove_scratch, scratch_folder

_ENVIRONMENT = {"CUDA_VISIBLE_DEVICES": ""}
_MAX_ANSWER = 256 << 20


class Answer(NamedTuple):
    """What a process left, and how it went."""

    data: bytes
    """Empty where it ended without an answer."""
    log: str
    ending: str


class OverLimitError(Exception):
    """The process did not end within its limit, and was ended."""


class ReferenceProcesses:
    """Forks processes for references from one zygote, which starts with the first; several threads may ask."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._lock = threading.Lock()
        self._zygote: tuple[int, ZygoteClient, Path] | None = None

    def ask(self, phase: str, job: bytes, limit_s: float, cancel: int = -1) -> Answer:
        """Run a phase to its end and read its answer; OverLimitError after `limit_s` seconds, of which starting the zygote is none.

        Where the descriptor `cancel` turns readable the process is ended, and CancelledError raised.
        """
        zygote = self._client()
        zygote.start()
        deadline = time.monotonic() + limit_s
        answer = os.memfd_create("answer", os.MFD_CLOEXEC)
        try:
            with zygote.phase(phase, job, {"answer": answer}, None, cancel) as child:
                child.wait(deadline)
            return Answer(os.pread(answer, min(os.fstat(answer).st_size, _MAX_ANSWER), 0), child.log.text, child.ending)
        except DeadlineError:
            raise OverLimitError from None
        finally:
            os.close(answer)

    def start(self) -> None:
        """Begin to start the zygote in a thread of its own, so that the first question finds it ready."""
        threading.Thread(target=self._start, name="references", daemon=True).start()

    def _start(self) -> None:
        try:
            self._client().start()
        except MachineError:
            # whoever asks is told
            return

    def _client(self) -> ZygoteClient:
        """The zygote of this process; a fork of it gets one of its own."""
        with self._lock:
            if self._zygote is None or self._zygote[0] != os.getpid():
                folder = scratch_folder(f"{PREFIX}references-")
                self._zygote = os.getpid(), ZygoteClient("reference", _ENVIRONMENT, folder, "references"), folder
            return self._zygote[1]

    def close(self) -> None:
        """End the zygote, and with it every process that it has forked."""
        with self._lock:
            if self._zygote is not None and self._zygote[0] == os.getpid():
                self._zygote[1].close()
                remove_scratch(self._zygote[2])
                self._zygote = None


PROCESSES = ReferenceProcesses()
"""This process's."""
atexit.register(PROCESSES.close)
