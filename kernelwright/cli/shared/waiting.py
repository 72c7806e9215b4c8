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
def waiting(doing: str, every_s: float = EVERY_S) -> Iterator[None]:
    """Say on standard error every few seconds of the body that it is still `doing` that."""
    ended, began = threading.Event(), time.monotonic()

    def say() -> None:
        while not ended.wait(every_s):
            print(f"kernelwright: {doing}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)

    teller = threading.Thread(target=say, name="waiting", daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()
