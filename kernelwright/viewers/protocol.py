"""What every viewer of a run is asked for, and under which names runs keep what it has."""

from __future__ import annotations

from typing import Protocol

SENT = "spans_sent"
"""Fact about a run: until when its spans have reached a collector, seconds since the epoch."""
SHOWN = "mlflow"
"""Fact about a run: what MLflow has of it, JSON."""


class Viewer(Protocol):
    """Another program that shows runs."""

    name: str
    """As a person would call it."""
    things: str
    """What it counts."""

    def look(self, *, stopped: bool = False) -> int:
        """Send what the run has recorded since the last look, and say how many things that was; MachineError where it cannot be sent.

        `stopped` says that nobody works on the run: what was cut short is sent, too.
        """
