"""The sentinel: a little trusted work on the device whose right answer is known, to tell a sick device from a bad candidate."""

from __future__ import annotations

from tools.evaluation.wire.jobs.sentinel import RIGHT, SentinelJob
from tools.evaluation.wire.phase import Phase

_SIDE = 256
_MEMORY_BYTES = 64 << 20


def work(phase: Phase) -> None:
    """Do the work and answer; whatever the driver raises ends the job."""
    job = SentinelJob.model_validate_json(phase.job)
    if is_right(job.device):
        phase.answer(RIGHT)


def is_right(device: str) -> bool:
    """Multiply integers that every format of the device holds exactly, and write and read memory."""
    import torch

    numbers = torch.arange(_SIDE * _SIDE, dtype=torch.int64).view(_SIDE, _SIDE) % 7
    product = numbers.to(device, torch.float32) @ numbers.T.contiguous().to(device, torch.float32)
    memory = torch.full((_MEMORY_BYTES,), 0x5A, dtype=torch.uint8, device=device)
    same = bool((memory == 0x5A).all())
    return same and torch.equal(product.cpu().long(), numbers @ numbers.T)
