"""How long the calibration kernel takes on a device: by it devices of one kind are compared."""

from __future__ import annotations

import time

from pydantic import ValidationError

from tools.errors import MachineError
from tools.evaluation.processes.child import DeadlineError
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.evaluation.wire.jobs.calibration import CalibrationAnswer, CalibrationJob
from tools.logs import telling_part

_LIMIT_S = 120.0


def calibration_us(workers: WorkerPool, device: str, cancel: int) -> float:
    """Have a trusted process time it; whoever asks has the device to itself."""
    job, mend = CalibrationJob(device=device).model_dump_json().encode(), "Look at the device with nvidia-smi."
    try:
        done = workers.ask("calibration", job, {}, time.monotonic() + _LIMIT_S, cancel)
    except DeadlineError:
        raise MachineError(f"The calibration kernel did not end within {_LIMIT_S:.0f} s.", mend) from None
    try:
        return CalibrationAnswer.model_validate_json(done.answer).median_us
    except ValidationError:
        raise MachineError(f"The calibration kernel gave no time: {telling_part(done.log)} ({done.ending}).", mend) from None
