"""Times of calls as CUDA graphs: what a module takes without its launches. Graphs are played by plain calls here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from tests.tools.models.samples import Norm
from tools.models.capture import Watch
from tools.models.found import Found
from tools.models.loading import Workload
from tools.models.replay import NotRecordedError, replayed_times

WEIGHTS = {"rows": 1.0, "row": 3.0}


def played(call: Callable[[], Any]) -> Callable[[], Any]:
    """Stand in for a graph."""
    call()
    return call


def rows_of(replay: Callable[[], Any]) -> float:
    """Stand in for a clock: ten microseconds a row."""
    return 10.0 * len(replay())


def watched() -> tuple[nn.Module, list[Workload], list[Found]]:
    """Two norms, watched under two workloads."""
    model = nn.Sequential(Norm(), Norm()).eval()
    workloads = [Workload(name, (torch.randn(count, 16),), {}, WEIGHTS[name]) for name, count in (("rows", 6), ("row", 1))]
    watch = Watch(model, cuda=False)
    for one in workloads:
        with watch.watching(one.name), torch.no_grad():
            model(*one.args)
    return model, workloads, list(watch.found.values())


def weighted(founds: list[Found], title: str) -> float:
    """Microseconds of all calls of a class."""
    return sum(found.weighted(WEIGHTS) for found in founds if type(found.module).__name__ == title)


def test_calls_take_what_their_graphs_take() -> None:
    """Each call of a module counts by a replay of it, the model's by those of its workloads."""
    model, workloads, founds = watched()
    us = replayed_times(model, workloads, founds, {"rows": 500.0, "row": 400.0}, played, rows_of)
    assert us == {"rows": 60.0, "row": 10.0}
    assert weighted(founds, "Sequential") == 60.0 + 3 * 10.0
    assert weighted(founds, "Norm") == 2 * (60.0 + 3 * 10.0)


def test_a_call_that_no_graph_holds_takes_the_part_that_the_model_takes() -> None:
    """A module that cannot be recorded by itself keeps its share."""
    model, workloads, founds = watched()
    before = weighted(founds, "Norm")

    def record(call: Callable[[], Any]) -> Callable[[], Any]:
        if len(recorded) == len(workloads):
            raise NotRecordedError("it waits for the device")
        recorded.append(call)
        return call

    recorded: list[Any] = []
    replayed_times(model, workloads, founds, {"rows": 600.0, "row": 100.0}, record, rows_of)
    assert abs(weighted(founds, "Norm") - before * 0.1) < 1e-9 * before


def test_a_model_that_the_device_keeps_busy_keeps_its_times() -> None:
    """Where a graph is no faster, or cannot hold the model, eager's times count."""
    model, workloads, founds = watched()
    before = weighted(founds, "Norm")
    assert replayed_times(model, workloads, founds, {"rows": 50.0, "row": 10.0}, played, rows_of) is None
    cached = [Workload("cached", (workloads[0].args[0], object()), {}, 1.0)]
    assert replayed_times(model, cached, founds, {"cached": 500.0}, played, rows_of) is None
    assert weighted(founds, "Norm") == before
