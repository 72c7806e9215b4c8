"""What the counted process is told, and what Nsight Compute said of it."""

from __future__ import annotations

from tools.records import ABI, Record


class CountersJob(Record):
    """All that the counted process is told."""

    ncu: str
    """Nsight Compute's program."""
    abi: ABI
    source: str
    tf32: bool = False
    """Whether library calls may round float32 to TF32: the policy's word."""


class CountersAnswer(Record):
    """What Nsight Compute said; untrusted text."""

    returncode: int
    output: str
