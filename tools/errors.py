"""The whole error model.

A bad candidate is data, never an exception: it is an `Evaluation` with a verdict, or a `Refusal` of the coder.
`UserError` means that what the user gave (a file, a flag, a setting, a store) cannot be used; the command line prints
`what` and `mend` on one line each and exits with status 2. `MachineError` means that this machine failed (a device,
a sandbox, a disk); a run that meets one keeps everything it had.
"""

from __future__ import annotations

INTERRUPTED = 130
"""Exit status of a command that Ctrl-C or SIGTERM stopped: 128 and the number of SIGINT."""


class KernelwrightError(Exception):
    """Say what is wrong and how to mend it; the base of both kinds."""

    def __init__(self, what: str, mend: str) -> None:
        """Keep `what` (one sentence, names the value) and `mend` (one imperative sentence)."""
        super().__init__(f"{what} {mend}")
        self.what = what
        self.mend = mend


class UserError(KernelwrightError):
    """What the user gave cannot be used."""


class UnjudgeableError(UserError):
    """No candidate for what the user gave could be judged here; the command line exits with status 3."""


class MachineError(KernelwrightError):
    """A failure of the machine at hand; it says nothing about any candidate."""


class Postponed(KernelwrightError):  # noqa: N818 - no error of anybody
    """A question was put where others answer it, and has no answer yet: the run stops here and can be resumed later."""
