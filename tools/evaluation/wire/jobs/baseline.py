"""Which reference a baseline process times."""

from __future__ import annotations

from tools.evaluation.wire.tensor_store import Sitting
from tools.records import Record


class BaselineJob(Record):
    """What to time."""

    sitting: Sitting
    """Its first call's inputs are used in every call."""
    flush_bytes: int
    cache: str
    """A folder that only trusted processes use: compiled references are kept there; empty means its own scratch."""
    max_autotune: bool = False
    """Whether torch.compile's max-autotune mode will be asked for too."""
