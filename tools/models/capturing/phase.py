"""What happens in the process that captures a model."""

from __future__ import annotations

from pathlib import Path

from tools.errors import UserError
from tools.evaluation.wire.phase import Phase
from tools.evaluation.wire.precision import set_precision
from tools.models.jobs import CaptureAnswer, CaptureJob


def capture(phase: Phase) -> None:
    """Run a model and answer with what its modules do, or with what is wrong with its file."""
    import torch

    from tools.models.capturing.capture import capture as captured
    from tools.models.loading import ModelFile

    job = CaptureJob.model_validate_json(phase.job)
    torch.set_num_threads(job.threads)
    set_precision(job.policy.precision)
    try:
        file = ModelFile(Path(job.file), job.factory, job.autocast)
        model = file.model(job.device)
        found = CaptureAnswer(capture=captured(model, file.workloads(model, 1, job.device), job.largest))
    except UserError as error:
        found = CaptureAnswer(what=error.what, mend=error.mend)
    phase.answer(found.model_dump_json().encode())
