"""Which reference a baseline process times."""

from __future__ import annotations

from tools.evaluation.wire.calls import CallPlan
from tools.records import Record

COMPILER = "compiler"
"""What a zygote says beside its versions: that it has imported torch.compile's compiler, and that its forks can use CUDA."""


class BaselineJob(Record):
    """What to time."""

    call_plan: CallPlan
    """Its first call's inputs are used in every call."""
    flush_bytes: int
    cache: str
    """A folder that only trusted processes use: compiled references are kept there; empty means its own scratch."""
    configurations: str = ""
    """File for what torch.compile's kernels were given where there was a choice; empty: it is not written down."""
    max_autotune: bool = False
    """Whether torch.compile's max-autotune mode will be asked for too."""
