"""What the counted process is told, and what Nsight Compute said of it."""

from __future__ import annotations

from tools.records import ABI, Precision, Record


class CountersJob(Record):
    """All that the counted process is told."""

    ncu: str
    """Nsight Compute's program."""
    abi: ABI
    source: str
    precision: Precision = Precision()
    """What library calls may round: the policy's word."""


class CountersAnswer(Record):
    """What Nsight Compute said; untrusted text."""

    returncode: int
    output: str
