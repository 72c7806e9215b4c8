"""What a command does to its two streams while it works: nothing of the user's on standard output, and no long silence."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

EVERY_S = 15.0
"""Seconds of silence after which a line says that work goes on."""
FIRST_S = 3.0
"""The same for the first line where a person watches."""


@contextmanager
def printing_aside() -> Iterator[None]:
    """Send what an operator prints in this process, or in one that it starts, to standard error: standard output is the answer's."""
    sys.stdout.flush()
    kept, before = os.dup(1), sys.stdout
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        sys.stdout = before
        os.dup2(kept, 1)
        os.close(kept)


@contextmanager
def waiting(doing: str, every_s: float = EVERY_S, first_s: float = FIRST_S) -> Iterator[None]:
    """Say on standard error every few seconds of the body that it is still `doing` that; on a terminal the first time sooner."""
    ended, began = threading.Event(), time.monotonic()

    def say() -> None:
        pause = min(first_s, every_s) if sys.stderr.isatty() else every_s
        while not ended.wait(pause):
            pause = every_s
            print(f"kernelwright: {doing}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)

    teller = threading.Thread(target=say, name="waiting", daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()
