"""Stations that go wrong, for evaluators of tests."""

from __future__ import annotations

import os

from tools.cluster.station import Order, Station
from tools.errors import MachineError
from tools.profiling.ncu import Counters
from tools.records import Baselines, Evaluation, EvaluationRequest, HardwareSheet, Problem


def open_broken(order: Order) -> Station:
    """A node that cannot evaluate."""
    raise MachineError("The driver is missing there.", "Mend it.")


def open_dying(order: Order) -> Station:
    """A node whose evaluators die while they begin."""
    os._exit(1)


class _Fatal:
    """Takes its process with it, as a kernel may that breaks the driver."""

    name = "fatal"

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Die."""
        os._exit(1)

    async def baselines(self, problem: Problem, target: HardwareSheet) -> Baselines:
        """Die."""
        os._exit(1)

    async def counters(self, request: EvaluationRequest) -> Counters:
        """Die."""
        os._exit(1)

    async def close(self) -> None:
        """Nothing is open."""


def open_fatal(order: Order) -> Station:
    """A node whose evaluators die over each candidate."""
    return Station(_Fatal())
