"""Programs that hear Ctrl-C, whatever started the tests: a shell's background ignores it, and so would its children."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from typing import Any


def start(line: Sequence[str], **given: Any) -> subprocess.Popen[str]:
    """Start a program that SIGINT interrupts."""
    # only a name is set between fork and exec
    return subprocess.Popen(line, text=True, preexec_fn=_hear, **given)  # noqa: PLW1509


def _hear() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
