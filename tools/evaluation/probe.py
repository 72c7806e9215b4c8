"""A phase that only shows that the walls stand: writes to scratch and, where there is a GPU, uses it."""

from __future__ import annotations

from tools.evaluation.phases import Phase

WORKS = b"works"


def run(phase: Phase) -> None:
    """Touch scratch; with the job `cuda`, start CUDA and add on the device; then say that it works."""
    file = phase.scratch / "probe"
    file.write_text("probe")
    file.unlink()
    if phase.job == b"cuda":
        import torch

        total = torch.ones(1024, device="cuda").sum().item()
        assert total == 1024.0
    phase.control.send(WORKS)
