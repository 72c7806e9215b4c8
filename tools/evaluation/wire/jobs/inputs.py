"""Which inputs are to be made, and which of them make sense."""

from __future__ import annotations

from tools.evaluation.wire.calls import CallPlan
from tools.records import Record


class InputsJob(Record):
    """Which inputs to make, and where."""

    call_plans: tuple[CallPlan, ...]
    device: str
    threads: int = 1
    device_stores: tuple[str, ...] = ()
    """By plan: the device store that keeps its tensors, or nothing where they lie in shared memory."""


class InputsAnswer(Record):
    """Which calls make sense."""

    usable: tuple[tuple[bool, ...], ...]
    """By plan and call: False where the reference raises, or has no finite answer, on a distribution of the battery."""
    notes: tuple[str, ...] = ()
    """Which were left out, and why."""
