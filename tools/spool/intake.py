"""What a worker finds in the jobs' folder: jobs for it, jobs for others, and files that are no jobs."""

from __future__ import annotations

import time
from collections.abc import Iterator

from tools.spool.claims import Claims
from tools.spool.folder import Spool
from tools.spool.forms import OtherVersionError
from tools.spool.records import Announcement, Job

SETTLE_S = 3.0
"""A file that cannot be read and has not changed for so long is no job that is still being copied."""


class Intake:
    """Sorts the jobs' folder for one worker."""

    def __init__(self, spool: Spool, worker: Announcement, settle_s: float = SETTLE_S) -> None:
        """Look for jobs that `worker` may answer; what cannot be read and rests for `settle_s` seconds is set aside."""
        self._settle_s = settle_s
        self._spool = spool
        self._worker = worker
        # by file name: its size and time of change, and when it was first seen so
        self._odd: dict[str, tuple[tuple[int, int], float]] = {}
        self.set_aside: dict[str, str] = {}
        """Files moved out of the way, with the reason."""
        self.left: dict[str, str] = {}
        """Jobs for other workers, with the reason."""
        self.to_say: list[str] = []
        """Of jobs left to others, what whoever runs this worker can mend."""
        self.unsettled = False
        """Whether the last look met a file that may yet become a job."""

    def jobs(self, claims: Claims) -> Iterator[Job]:
        """Yield the jobs this worker may answer, oldest first; answered and withdrawn ones are cleared away."""
        self.unsettled = False
        for name in self._spool.job_files():
            job_id = name.removesuffix(".json")
            if job_id in self.left:
                continue
            if self._spool.has_answer(job_id):
                self._spool.drop_job(job_id)
                claims.clear(job_id)
                continue
            job = self._read(name)
            if job is None:
                continue
            if self._spool.is_withdrawn(job_id, job.token):
                self._spool.drop_job(job_id)
            elif reason := self._unsuitable(job):
                self.left[job_id] = reason
            else:
                yield job

    def _read(self, name: str) -> Job | None:
        try:
            if not name.endswith(".json"):
                raise ValueError("its name is not that of a job")
            return self._spool.job(name.removesuffix(".json"))
        except OtherVersionError as error:
            self._leave(name.removesuffix(".json"), error)
            return None
        except (ValueError, OSError) as error:
            self._consider(name, str(error))
            return None

    def _leave(self, job_id: str, error: OtherVersionError) -> None:
        """Leave a job of another version to a worker that can read it, and tell its asker which side to update."""
        here = f"update kernelwright on host {self._worker.worker.host} and start the worker again"
        mend = here if error.newer else "update kernelwright where it was asked"
        self.left[job_id] = f"job {job_id} cannot be read: {error}; {mend}"
        self.to_say.append(self.left[job_id])
        self._spool.leave(job_id, f"{self._worker.worker} cannot read it: {error}; {mend}")

    def _consider(self, name: str, reason: str) -> None:
        """Set an unreadable file aside once it has stopped changing."""
        try:
            found = (self._spool.folder / "jobs" / name).stat()
        except OSError:
            return
        shape, now = (found.st_size, found.st_mtime_ns), time.monotonic()
        known = self._odd.get(name)
        if known is None or known[0] != shape:
            self._odd[name] = (shape, now)
            self.unsettled = True
        elif now - known[1] < self._settle_s:
            self.unsettled = True
        else:
            del self._odd[name]
            try:
                self._spool.set_aside("jobs", name, reason)
            except OSError as error:
                self.left[name.removesuffix(".json")] = f"{reason}; it could not be set aside: {error.strerror}"
            else:
                self.set_aside[name] = reason

    def _unsuitable(self, job: Job) -> str:
        """Say why this worker must leave a job to others; empty where it may answer."""
        worker = self._worker
        if job.executor not in {"any", worker.executor}:
            return f"{job} is for a worker with {'a GPU' if job.executor == 'gpu' else 'the interpreter'}"
        if worker.executor == "gpu" and job.target.name != worker.target:
            return f"{job} is for another device; this worker has {worker.target}"
        return ""
