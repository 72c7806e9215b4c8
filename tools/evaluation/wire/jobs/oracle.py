"""What the oracle is to judge, and its verdict on each call."""

from __future__ import annotations

from tools.evaluation.wire.calls import CallPlan
from tools.records import OutputError, Record, WrongOutput


class OracleJob(Record):
    """What to judge, and where."""

    call_plans: tuple[CallPlan, ...]
    skip: tuple[tuple[bool, ...], ...]
    """By plan and call: not made, so not to be judged."""
    device: str
    threads: int = 1
    device_stores: tuple[str, ...] = ()
    """By plan: the device store that keeps its tensors, or nothing where they lie in shared memory."""


class CallVerdict(Record):
    """Errors of one call."""

    call_plan: int
    call: int
    group: str
    outputs: tuple[OutputError, ...]
    wrong: tuple[WrongOutput, ...] = ()
    """Where its outputs are off; of the first wrong calls of each plan only."""
    repeat_agrees: bool = True
    """Whether the run with the other poison gave the same: bitwise, or within the limits of each other."""


class OracleAnswer(Record):
    """All calls, and what could not be used."""

    calls: tuple[CallVerdict, ...]
    notes: tuple[str, ...] = ()
