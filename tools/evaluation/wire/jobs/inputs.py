"""Which inputs are to be made, and which of them make sense."""

from __future__ import annotations

from tools.evaluation.wire.tensor_store import Sitting
from tools.records import Record


class InputsJob(Record):
    """Which inputs to make, and where."""

    sittings: tuple[Sitting, ...]
    device: str
    threads: int = 1
    vaults: tuple[str, ...] = ()
    """By sitting: the vault that keeps its tensors, or nothing where they lie in shared memory."""


class InputsAnswer(Record):
    """Which calls make sense."""

    usable: tuple[tuple[bool, ...], ...]
    """By sitting and call: False where the reference raises, or has no finite answer, on a distribution of the battery."""
    notes: tuple[str, ...] = ()
    """Which were left out, and why."""
