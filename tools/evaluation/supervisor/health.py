"""Whether a device can be trusted with the next candidate; one that cannot is quarantined, and that is nobody's verdict.

After every evaluation: no process of ours that has lost its parent is on the device, and no memory is held that no process holds. After
a candidate that crashed or hung, a trusted process also does the sentinel's work.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from tools.errors import MachineError
from tools.evaluation.processes.child import DeadlineError
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.evaluation.sandbox.isolation import PLAIN_UIDS
from tools.evaluation.wire.jobs.sentinel import RIGHT, SentinelJob
from tools.logs import telling_part
from tools.profiling.nvml import DeviceUse, device_use
from tools.records import Problem

LEAK_BYTES = 512 << 20
"""Memory beyond what was unaccounted for at the start that may stay so: about what a context takes that is just being torn down."""
SETTLING_S = 5.0
"""How long the driver may take to give back what a dead process held."""
_PAUSE_S = 0.05
_SENTINEL_S = 60.0

Look = Callable[[], DeviceUse | None]


class Health:
    """What is known of one device; every view of a pool shares it."""

    def __init__(self, device: int, look: Look | None = None, settling_s: float = SETTLING_S) -> None:
        """Begin with the device as it is now: what others hold there is theirs."""
        self._device = device
        self._look = look or (lambda: device_use(device))
        self._settling_s = settling_s
        first = self._look()
        self._unaccounted = first.unaccounted_bytes if first else None
        self._others = frozenset(first.processes) if first else frozenset()
        self._reason = ""

    @property
    def reason(self) -> str:
        """Why the device is quarantined; empty where it is not."""
        return self._reason

    def demand(self) -> None:
        """Raise MachineError where the device is quarantined."""
        if self._reason:
            mend = "Look at it with nvidia-smi, end what is left on it or reset it, then start again."
            raise MachineError(f"GPU {self._device} is quarantined: {self._reason}.", mend)

    def quarantine(self, reason: str) -> None:
        """Use the device no more, if there is a reason; the first one stays."""
        self._reason = self._reason or reason

    def examine(self) -> str:
        """Look at processes and memory, wait a little for what is only late, quarantine where it stays; say why, or nothing."""
        deadline = time.monotonic() + self._settling_s
        while fault := self._fault():
            if time.monotonic() >= deadline:
                self.quarantine(fault)
                return fault
            time.sleep(_PAUSE_S)
        return ""

    def _fault(self) -> str:
        use = self._look()
        if use is None:
            return ""
        left = [pid for pid in use.processes if pid not in self._others and is_orphan_of_ours(pid)]
        if left:
            return f"process {left[0]} of a candidate is still on it"
        unaccounted = use.unaccounted_bytes
        # where the driver lists nobody it hides them, and ours would count as a leak
        if unaccounted is None or self._unaccounted is None or not use.processes:
            return ""
        leak = unaccounted - self._unaccounted
        return f"{leak / 2**20:.0f} MiB of its memory are held by no process" if leak > LEAK_BYTES else ""


def sick(workers: WorkerPool, problem: Problem, cancel: int) -> str:
    """Have a trusted process do the sentinel's work, a new one where the first try fails; say what is wrong, or nothing."""
    job, reason = SentinelJob(device="cuda").model_dump_json().encode(), ""
    for _ in range(2):
        try:
            done = workers.ask("sentinel", job, {}, time.monotonic() + _SENTINEL_S, cancel, problem=problem)
        except DeadlineError:
            reason = f"trusted work on it did not end within {_SENTINEL_S:.0f} s"
        except MachineError as error:
            reason = f"trusted work on it could not be started: {error.what}"
        else:
            if done.answer == RIGHT:
                return ""
            reason = f"trusted work on it gave no right answer: {telling_part(done.log)} ({done.ending})"
    return reason


def is_orphan_of_ours(pid: int, proc: Path = Path("/proc")) -> bool:
    """Whether a process lives under one of our sandboxes' user ids and its parent is gone: while a phase lives its warden is the parent.

    Without root sandboxes have no user ids of their own, and nothing is known.
    """
    if os.geteuid() != 0:
        return False
    try:
        fields = dict(line.split(":", 1) for line in (proc / str(pid) / "status").read_text().splitlines() if ":" in line)
    except OSError:
        return False
    return int(fields["Uid"].split()[0]) in PLAIN_UIDS and int(fields["PPid"]) <= 1
