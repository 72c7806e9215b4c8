"""A kernel that a run delivered for calls of a model's modules."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tools.guards import Contract
from tools.models.records import Group, Trace


@dataclass(frozen=True)
class Delivered:
    """A kernel that a run delivered for one group."""

    group: Group
    trace: Trace
    contract: Contract
    kernel: str
    """The guarded file."""
    evidence: Path | None
    """Its bundle."""
    compiled: bool = True
    """Whether it is used inside torch.compile."""
    seen: bool = True
    """Whether its kernels may be seen there, where they are Triton alone."""

    @property
    def replays(self) -> bool:
        """Whether the kernel's forward is a CUDA graph of its own."""
        return "def replayed(" in self.kernel
