"""What a runner is told; its calls and answers are in `wire.channel`."""

from __future__ import annotations

from tools.evaluation.wire.launch_plan import LaunchPlan
from tools.records import ABI, HardwareSheet, Precision, Record

WARM = b"warm"
"""The job of a spare, and what it says when CUDA runs in it."""
BEGUN, START, CONTEXT = b"begun", b"start", b"context"
"""What it says when it has done what needs no device, what it is told then, and what it says when it has a context there."""


class RunnerJob(Record):
    """All that a runner is told."""

    abi: ABI
    source: str
    device: str
    """`cpu` (Triton's interpreter) or `cuda`."""
    sheet: HardwareSheet
    """What host code may ask about the device."""
    flush_bytes: int = 0
    """Read before each call to empty the L2 cache; 0 on the CPU."""
    precision: Precision = Precision()
    """What library calls may round: the policy's word, as for the reference and the baselines."""
    threads: int = 1
    cache: str = ""
    """What the builder has compiled, packed."""
    plan: LaunchPlan | None = None
    """Run this in the place of a source: then no host code of the candidate is here."""
