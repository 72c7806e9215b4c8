"""Captures and proves models in processes of their own: the first as references run, the second inside the walls, as kernels do."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tools
from tools.errors import MachineError, UserError
from tools.evaluation.processes.child import DeadlineError
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.hardware.devices import ALL, choose_devices
from tools.logs import telling_part
from tools.models.jobs import CaptureAnswer, CaptureJob, Proof, ProofJob
from tools.models.records import Capture
from tools.scratch import PREFIX, scratch

CAPTURE_S = 600.0
"""Limit of running a model to capture it, seconds."""
TOOLS = str(Path(tools.__file__).resolve().parent)
"""Our own code, which the process inside the walls imports."""
_MAX_ANSWER = 128 << 20


class ModelProcesses:
    """The processes in which one user's model runs, on one device or on the CPU."""

    def __init__(self, scratch: Path, devices: str = ALL, title: str = "") -> None:
        """Work in `scratch`, on the first of `devices`; without a GPU, kernels are interpreted."""
        chosen = choose_devices(devices, title)
        self.device: str = "cuda" if chosen else "cpu"
        self._workers = WorkerPool(scratch, chosen[0] if chosen else None)

    def capture(self, job: CaptureJob, limit_s: float = CAPTURE_S) -> Capture:
        """Capture a model; what is wrong with its file, or takes too long, raises UserError."""
        self._workers.start(judges=False)
        try:
            finished = self._workers.ask("model_capture", job.model_dump_json().encode(), {}, time.monotonic() + limit_s, -1)
        except DeadlineError:
            raise UserError(f"The model was not captured within {limit_s:.0f} s.", "Choose a smaller model or smaller workloads.") from None
        if not finished.answer:
            said = telling_part(finished.log) or finished.ending
            raise UserError(f"The model ended the process that ran it: {said}.", "Run its file by itself to see why.")
        found = CaptureAnswer.model_validate_json(finished.answer)
        if found.capture is None:
            raise UserError(found.what, found.mend)
        return found.capture

    def prove(self, job: ProofJob) -> Proof:
        """Prove a package; where the process ends early, what it had found by then counts, with a note that says so."""
        self._workers.start()
        gpu = self.device != "cpu"
        zygote = self._workers.native if gpu else self._workers.interpreter
        answer = os.memfd_create("answer", os.MFD_CLOEXEC)
        late = ""
        try:
            with self._workers.untrusted(
                zygote,
                "model_proof",
                job.model_dump_json().encode(),
                {"answer": answer},
                gpu=gpu,
                cancel=-1,
                readable=(str(Path(job.file).absolute().parent), TOOLS),
            ) as child:
                try:
                    child.wait(time.monotonic() + job.limit_s)
                except DeadlineError:
                    late = f"The proof was cut off after {job.limit_s:.0f} s."
                said, ending = telling_part(child.log.text), child.ending
            data = os.pread(answer, min(os.fstat(answer).st_size, _MAX_ANSWER), 0)
        except MachineError as error:
            return Proof(what=error.what, mend=error.mend)
        finally:
            os.close(answer)
        if not data:
            return Proof(what=late or f"The process that ran the model gave no proof: {said or ending}.", mend="See report.json.")
        found = Proof.model_validate_json(data)
        if job.timed and not found.times and found.holds:
            return found.model_copy(update={"notes": (*found.notes, late or f"Nothing was timed: {said or ending}.")})
        return found.model_copy(update={"notes": (*found.notes, f"{late} Figures are of what was timed by then.")}) if late else found

    def close(self) -> None:
        """End every process."""
        self._workers.close()


@contextmanager
def model_processes(devices: str = ALL, title: str = "") -> Iterator[ModelProcesses]:
    """Open processes for models with a scratch folder of their own, and close them."""
    with scratch(f"{PREFIX}model-") as folder:
        processes = ModelProcesses(folder, devices, title)
        try:
            yield processes
        finally:
            processes.close()
