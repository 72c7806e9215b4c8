"""Builds as tasks of Ray's on any processor of the cluster, so that whoever holds a GPU only times."""

from __future__ import annotations

import select
import time
from functools import cache
from typing import Any

from tools.evaluation.processes.child import CancelledError, DeadlineError
from tools.evaluation.processes.worker_pool import Finished, WorkerPool
from tools.scratch import PREFIX, scratch_folder

_LOOK_S = 0.1


class RayBuilds:
    """Builds elsewhere what a supervisor here judges."""

    def __init__(self, function: Any) -> None:
        """Call `function`, of `build_function`."""
        self._function = function

    def __call__(self, job: bytes, limit_s: float, cancel: int) -> Finished:
        """Build as a task and wait for it; the limit counts from when it is begun there."""
        import ray

        ref = self._function.remote(job, limit_s)
        while not ray.wait([ref], timeout=_LOOK_S)[0]:
            if cancel >= 0 and select.select([cancel], [], [], 0)[0]:
                ray.cancel(ref, force=False)
                raise CancelledError
        answer, log, ending = ray.get(ref)
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

    return ray.remote(num_cpus=1, max_retries=-1, scheduling_strategy="SPREAD")(build)


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
