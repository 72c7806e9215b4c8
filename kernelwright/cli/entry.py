"""The command line as a process of its own, which is not taken apart at its end.

With torch or LangGraph imported Python looks through all of it for garbage several times before it ends, and then removes it piece by
piece: 0.4 s of each command at least. The system takes it all back at once.
"""

from __future__ import annotations

import atexit
import os
import sys


class _Ending:
    """Ends the process once the rest of its end is done."""

    def __init__(self) -> None:
        self.status: int | None = None
        """None where Python itself has something to say."""

    def leave(self) -> None:
        """Write what is left to write, and be gone."""
        if self.status is None:
            return
        try:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        except (OSError, ValueError):
            # a closed pipe has a status of its own
            return
        os._exit(self.status)


def main() -> None:
    """Run the command line and end; for a process that does nothing else."""
    ending = _Ending()
    # before anything is imported: what is asked for first is called last, after everything that wants to be closed
    atexit.register(ending.leave)
    from kernelwright.cli.app import main as run

    try:
        run()
    except SystemExit as end:
        ending.status = _status(end)
        raise
    ending.status = 0


def _status(end: SystemExit) -> int | None:
    if end.code is None:
        return 0
    return end.code & 0xFF if isinstance(end.code, int) else None
