"""Builds as tasks of Ray's on any processor of the cluster, so that whoever holds a GPU only times."""

from __future__ import annotations

import select
import time
from functools import cache
from typing import Any

from tools.cluster.shortage import LOGS, shortage
from tools.errors import MachineError
from tools.evaluation.processes.child import CancelledError, DeadlineError
from tools.evaluation.processes.worker_pool import Finished, WorkerPool
from tools.scratch import PREFIX, scratch_folder

_LOOK_S = 0.1
_PLACE_S = 600.0
"""How long a processor is waited for, or for those of lost nodes to be had elsewhere."""
_RETRIES = 3
"""How often a build is begun again whose process or node was lost; one that ends its process each time is not tried for ever."""


class RayBuilds:
    """Builds elsewhere what a supervisor here judges."""

    def __init__(self, function: Any, place_s: float = _PLACE_S) -> None:
        """Call `function`, of `build_function`; wait `place_s` seconds for a place beyond what the build itself may take."""
        self._function = function
        self._place_s = place_s

    def __call__(self, job: bytes, limit_s: float, cancel: int) -> Finished:
        """Build as a task and wait for it; the limit counts from when it is begun there."""
        import ray
        from ray.exceptions import RayError

        ref, last = self._function.remote(job, limit_s), time.monotonic() + limit_s + self._place_s
        while not ray.wait([ref], timeout=_LOOK_S)[0]:
            if cancel >= 0 and select.select([cancel], [], [], 0)[0]:
                ray.cancel(ref, force=False)
                raise CancelledError
            if time.monotonic() > last:
                ray.cancel(ref, force=False)
                what = f"A build has not ended {limit_s + self._place_s:.0f} s after it was asked for: {shortage({'num_cpus': 1})}."
                raise MachineError(what, f"Add processors to the cluster, or look at {LOGS}.")
        try:
            answer, log, ending = ray.get(ref)
        except RayError as error:
            said = " ".join(str(error).split())[:300]
            raise MachineError(f"A build was lost {_RETRIES + 1} times, or failed: {said}.", f"Look at {LOGS}.") from error
        if ending is None:
            raise DeadlineError
        return Finished(answer, log, ending)


def build_function() -> Any:
    """The task: a lost node's builds are begun again elsewhere, by Ray."""
    import ray

    def build(job: bytes, limit_s: float) -> tuple[bytes, str, str | None]:
        from importlib import import_module

        # it makes `tools` importable under its own name
        import_module("kernelwright")
        from tools.cluster.builds import build_here

        return build_here(job, limit_s)

    return ray.remote(num_cpus=1, max_retries=_RETRIES, scheduling_strategy="SPREAD")(build)


def build_here(job: bytes, limit_s: float) -> tuple[bytes, str, str | None]:
    """Build in a sandbox of this process's own pool; no ending says that the limit came first."""
    try:
        done = _workers().ask("builder", job, {}, time.monotonic() + limit_s, -1, sandboxed=True)
    except DeadlineError:
        return b"", "", None
    return done.answer, done.log, done.ending


@cache
def _workers() -> WorkerPool:
    """One pool a process: Ray uses a process for one task after the other."""
    scratch = scratch_folder(f"{PREFIX}builds-")
    scratch.chmod(0o711)
    pool = WorkerPool(scratch, None)
    pool.start(judges=False)
    return pool
