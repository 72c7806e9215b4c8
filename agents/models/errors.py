"""How asking a model can fail without the user or the candidate being at fault."""

from __future__ import annotations

from tools.errors import KernelwrightError, MachineError


class ModelUnavailable(MachineError):  # noqa: N818 - an event of a run, named as the run records it
    """The server gave no usable reply after every retry; what the run has so far stands."""


class BudgetReached(KernelwrightError):  # noqa: N818 - the same
    """A call was not made because it could exceed a limit of the budget."""


class NotRecorded(KernelwrightError):  # noqa: N818 - the same
    """A repeated run asks what the recorded one never asked: it has taken another way."""
