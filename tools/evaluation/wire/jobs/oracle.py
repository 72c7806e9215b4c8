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
    left_out: tuple[float, ...] = ()
    """By output: the share of its elements that depend on how equal elements are put in order; empty where that was not asked."""
    repeat_agrees: bool = True
    """Whether the run with the other poison gave the same: bitwise, or within the limits of each other."""

    @property
    def judged(self) -> bool:
        """Whether anything of it was held against the reference."""
        return not self.left_out or min(self.left_out) < 1


class OracleAnswer(Record):
    """All calls, and what could not be used."""

    calls: tuple[CallVerdict, ...]
    notes: tuple[str, ...] = ()

    @property
    def left_out(self) -> float:
        """The largest share of an output that was left out of the judgement of a call."""
        return max((share for call in self.calls for share in call.left_out), default=0.0)
