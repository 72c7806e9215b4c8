"""Stations that go wrong, for evaluators of tests."""

from __future__ import annotations

from tools.cluster.station import Order, Station
from tools.errors import MachineError


def open_broken(order: Order) -> Station:
    """A node that cannot evaluate."""
    raise MachineError("The driver is missing there.", "Mend it.")
