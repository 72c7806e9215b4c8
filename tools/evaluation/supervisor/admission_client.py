"""Has problems examined in a trusted process, each once."""

from __future__ import annotations

import threading
import time

from pydantic import ValidationError

from tools.evaluation.processes.child import DeadlineError
from tools.evaluation.processes.worker_pool import Holding, WorkerPool
from tools.evaluation.wire.jobs.admission import AdmissionJob
from tools.logs import telling_part
from tools.problems.variants import VARIANTS
from tools.records import Admission, Problem

LIMIT_S = 60.0
"""Most problems are examined in 3 s; one that takes longer than this is not."""
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

    def admission(self, problem: Problem, cancel: int, holding: Holding | None = None) -> Admission:
        """Examine `problem` at small sizes, and as written where that is cheap; what cannot be examined says why.

        The process is held by `holding` while it works. Where it gave no answer, the problem is examined once more, and then without
        the device: a reference without one of its operators may read beyond its inputs, and a device ends the process for that.
        """
        with self._lock:
            known = self._known.get(problem.id)
        if known is None:
            # what others had on the device may have failed it
            ways = (True, True, False) if self._gpu else (False, False)
            for gpu in ways:
                known, said = self._examine(problem, cancel, holding, gpu=gpu)
                if known is not None:
                    break
            known = known or Admission(notes=(f"The problem was not examined: {said}",))
            with self._lock:
                self._known[problem.id] = known
        return known

    def _examine(self, problem: Problem, cancel: int, holding: Holding | None, *, gpu: bool) -> tuple[Admission | None, str]:
        """Have a process do it; where that gave no answer, what it said."""
        known = VARIANTS.of(problem)
        written = (problem,) if _is_cheap(problem, gpu=gpu) else ()
        job = AdmissionJob.of((*(known or ()), *written), "cuda" if gpu else "cpu", problem if known is None else None)
        deadline = time.monotonic() + LIMIT_S
        try:
            done = self._workers.ask("admission", job.model_dump_json().encode(), {}, deadline, cancel, holding=holding)
            return Admission.model_validate_json(done.answer), ""
        except DeadlineError:
            return Admission(notes=(f"The problem was not examined: that takes longer than {LIMIT_S:.0f} s.",)), ""
        except ValidationError:
            return None, telling_part(done.log)


def _is_cheap(problem: Problem, *, gpu: bool) -> bool:
    return problem.abi.nbytes <= _WRITTEN_BYTES[gpu] and problem.work.matmul_flops <= _WRITTEN_FLOPS[gpu]
