"""What all commands have in common: numbers that are numbers, and an orderly end by Ctrl-C or SIGTERM."""

from __future__ import annotations

import functools
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import typer

from tools.errors import INTERRUPTED, UserError

LARGEST = 1e12
"""Numbers beyond this are no amount of anything here."""


def guarded(command: Callable[..., Any]) -> Callable[..., Any]:
    """Have a command refuse numbers that are infinite or no number, and say in a line that it was stopped."""

    @functools.wraps(command)
    def run(**options: Any) -> Any:
        for name, value in options.items():
            _demand_number(name, value)
        try:
            return command(**options)
        except KeyboardInterrupt:
            print("kernelwright: stopped before anything was begun that could be gone on with.", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None

    return run


@contextmanager
def stopped_by_sigterm() -> Iterator[None]:
    """Have SIGTERM do what Ctrl-C does, unless it is ignored or somebody handles it already."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _stop(number: int, frame: FrameType | None) -> None:
    """Do what Ctrl-C does now, a loop's own way of it included; what ignores Ctrl-C, as background jobs do, is stopped, too."""
    asked = signal.getsignal(signal.SIGINT)
    if not callable(asked):
        raise KeyboardInterrupt
    asked(signal.SIGINT, frame)


def _demand_number(name: str, value: Any) -> None:
    if isinstance(value, float) and not abs(value) <= LARGEST:
        option = f"--{name.replace('_', '-')}"
        raise UserError(f"{option} {value:g} is not an amount.", f"Give a finite number; `--help` says what 0 means for {option}.")
