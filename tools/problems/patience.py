"""A limit on what a user's file may take to make its inputs: one that never ends is named with its line."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

STEP_S = 120.0
"""A file whose import or `get_inputs()` takes longer is given up: the largest of KernelBench's take seconds on a crowded core."""

_limit_s = 0.0


class EndlessError(BaseException):
    """Code of the user ran over its limit; none of its own handlers for Exception may catch this."""


def limit_steps(seconds: float) -> None:
    """Give every step in this process that is `limited` so many seconds; 0, as it begins: no limit."""
    global _limit_s  # noqa: PLW0603 - a setting of the process, as a signal's handler is
    _limit_s = seconds


@contextmanager
def limited(seconds: float | None = None) -> Iterator[None]:
    """Raise EndlessError in the body after so many seconds, a step's limit unless they are given.

    Without effect outside of the main thread, which has the signals.
    """
    seconds = _limit_s if seconds is None else seconds
    if not seconds or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise EndlessError(f"it had not ended after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    # again and again: code that catches everything is met a second time
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
