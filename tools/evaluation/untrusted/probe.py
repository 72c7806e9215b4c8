"""A phase that only shows that the walls stand: writes to scratch and, where there is a GPU, uses it."""

from __future__ import annotations

from tools.evaluation.wire.device_memory import attach
from tools.evaluation.wire.jobs.device_store import PROOF
from tools.evaluation.wire.jobs.probe import WORKS
from tools.evaluation.wire.phase import Phase


def run(phase: Phase) -> None:
    """Touch scratch, and say that it works; with the job `cuda` if adding on the device does, with `carried` if mapping its memory does."""
    file = phase.scratch / "probe"
    file.write_text("probe")
    file.unlink()
    if phase.job == b"cuda":
        import torch

        total = torch.ones(1024, device="cuda").sum().item()
        assert total == 1024.0
    if phase.job == b"carried":
        memory = attach(phase.shared["carried"], 1, "cuda")
        assert bool((memory.bytes_at(0, memory.size) == PROOF).all())
    phase.control.send(WORKS)
