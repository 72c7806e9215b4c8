"""Reads the machine code of a candidate's kernels beside the check: what the compiler used, once for equal code."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, wait
from contextlib import contextmanager

from pydantic import ValidationError

from tools.evaluation.processes.allowance import Allowance
from tools.evaluation.processes.child import DeadlineError
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.evaluation.supervisor.case import Case
from tools.evaluation.wire.jobs.resources import ResourcesAnswer, ResourcesJob
from tools.records import KernelResources, content_hash

_RESOURCES_S = 120.0


class KernelReader:
    """Asks sandboxed readers, and remembers what they said by the code's content."""

    def __init__(self, threads: Executor) -> None:
        """Wait for readers in `threads`."""
        self._threads = threads
        self._read: dict[str, tuple[tuple[KernelResources, ...], tuple[str, ...]]] = {}

    @contextmanager
    def beside(self, workers: WorkerPool, case: Case, cancel: int) -> Iterator[None]:
        """Read the compiled kernels while the block runs; they are in `case` afterwards."""
        reading = self._threads.submit(self._kernels, workers, case, cancel)
        try:
            yield
        finally:
            # also where the rest failed: `cancel` is the caller's, and closed when this is over
            wait([reading])
        case.kernels, notes = reading.result()
        case.notes += notes

    def _kernels(self, workers: WorkerPool, case: Case, cancel: int) -> tuple[tuple[KernelResources, ...], tuple[str, ...]]:
        """Read them; the notes say what could not be read."""
        if not case.build.kernels:
            return (), ()
        arch = case.request.target.arch
        key = content_hash(arch, *(f"{kernel.name} {kernel.shared_bytes} {kernel.code}" for kernel in case.build.kernels))
        if key in self._read:
            return self._read[key]
        job = ResourcesJob(arch=arch, kernels=case.build.kernels)
        try:
            done = workers.ask("resources", job.model_dump_json().encode(), {}, Allowance(_RESOURCES_S), cancel, sandboxed=True)
            answer = ResourcesAnswer.model_validate_json(done.answer)
        except (DeadlineError, ValidationError):
            return (), ("The machine code could not be read: its figures are missing.",)
        self._read[key] = answer.kernels, answer.notes
        return self._read[key]
