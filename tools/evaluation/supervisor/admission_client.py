"""Has problems examined in a trusted process, each once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from pydantic import ValidationError

from tools.errors import UserError
from tools.evaluation.processes.child import DeadlineError
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.evaluation.wire.jobs.admission import AdmissionJob
from tools.logs import telling_part
from tools.problems import small_variants
from tools.records import Admission, Problem

LIMIT_S = 300.0
_WRITTEN_BYTES = {True: 256 << 20, False: 8 << 20}
"""By whether there is a GPU: problems up to this size are examined as written too."""
_WRITTEN_FLOPS = {True: 1e12, False: 1e8}


class Admissions:
    """Admissions by problem."""

    def __init__(self, workers: WorkerPool) -> None:
        """Use `workers`' processes."""
        self._workers = workers
        self._gpu = workers.device is not None
        self._known: dict[str, Admission] = {}
        self._lock = threading.Lock()

    def admission(self, problem: Problem, cancel: int, lasts: Callable[[Admission], bool] = lambda _: True) -> Admission:
        """Examine `problem` at small sizes, and as written where that is cheap; what cannot be examined says why.

        An answer that does not last is looked for again the next time.
        """
        with self._lock:
            known = self._known.get(problem.id)
        if known is None:
            known = self._examine(problem, cancel)
            if lasts(known):
                with self._lock:
                    self._known[problem.id] = known
        return known

    def _examine(self, problem: Problem, cancel: int) -> Admission:
        try:
            problems = small_variants(problem)
        except UserError as error:
            return Admission(notes=(f"The problem was not examined: {error.what}",))
        if self._is_cheap(problem):
            problems = (*problems, problem)
        if not problems:
            return Admission(notes=("The problem was not examined: it has no small variants and is too large as written.",))
        job = AdmissionJob.of(problems, "cuda" if self._gpu else "cpu")
        try:
            done = self._workers.ask("admission", job.model_dump_json().encode(), {}, time.monotonic() + LIMIT_S, cancel)
            return Admission.model_validate_json(done.answer)
        except DeadlineError:
            return Admission(notes=(f"The problem was not examined: that takes longer than {LIMIT_S:.0f} s.",))
        except ValidationError:
            return Admission(notes=(f"The problem was not examined: {telling_part(done.log)}",))

    def _is_cheap(self, problem: Problem) -> bool:
        return problem.abi.compulsory_bytes <= _WRITTEN_BYTES[self._gpu] and problem.work.matmul_flops <= _WRITTEN_FLOPS[self._gpu]
