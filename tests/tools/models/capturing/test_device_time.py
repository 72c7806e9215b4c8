"""Times of modules as CUDA graphs: what they take without their launches. Graphs are played by plain calls here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from tests.tools.models.samples import Norm
from tools.models.capturing.device_time import REPLAYED, by_device
from tools.models.capturing.found import Found
from tools.models.loading import Workload
from tools.models.records import Capture, Group
from tools.models.replay import NotRecordedError

WEIGHTS = {"rows": 1.0, "row": 3.0}
EAGER = {"rows": 500.0, "row": 400.0}
MODEL = nn.Sequential(Norm(), Norm()).eval()
ROWS, ROW = torch.randn(6, 16), torch.randn(3, 16)
WORKLOADS = [Workload("rows", (ROWS,), {}, 1.0), Workload("row", (ROW,), {}, 3.0)]


def calls(module: nn.Module, path: str, us: float, count: int, *, given: Any = ROWS, workload: str = "rows") -> Found:
    """Equal calls of a module in one workload."""
    return Found(module, (given,), {}, {path: None}, {workload: count}, {workload: [[us] * count]})


SOURCES = {
    "whole": [calls(MODEL, "", 500.0, 1), calls(MODEL, "", 400.0, 1, given=ROW, workload="row")],
    "norm": [calls(MODEL[0], "0", 200.0, 2), calls(MODEL[0], "0", 150.0, 2, given=ROW, workload="row")],
}


def captured() -> Capture:
    """A capture by eager runs."""
    whole = Group(name="whole", title="Sequential", paths=("",), config="", calls={}, us=425.0, share=1.0, operators=8)
    norm = whole.model_copy(update={"name": "norm", "paths": ("0", "1"), "us": 162.5, "share": 1300.0 / 1700.0})
    return Capture(title="M", clock="events", us=EAGER, weights=WEIGHTS, modules=3, groups=(whole, norm))


def played(call: Callable[[], Any]) -> Callable[[], Any]:
    """Stand in for a graph."""
    return call


def rows_of(replay: Callable[[], Any]) -> float:
    """Stand in for a clock: ten microseconds a row."""
    return 10.0 * len(replay())


def thirds(call: Any) -> Callable[[], Any]:
    """Stand in for a graph; of a module it does a third of what that of the model does."""
    return call if isinstance(call, partial) else lambda: call()[::3]


def test_modules_count_by_what_their_graphs_take() -> None:
    """Shares are of the graphs' time, and eager's times of the model are kept beside them."""
    found = by_device(captured(), MODEL, WORKLOADS, SOURCES, thirds, rows_of)
    whole, norm = sorted(found.groups, key=lambda group: group.name, reverse=True)
    assert (found.clock, found.us, found.eager_us) == (REPLAYED, {"rows": 60.0, "row": 30.0}, EAGER)
    assert whole.share == pytest.approx(1.0)
    # two calls of 20 µs and, counted three times, two of 10 µs, of 60 + 3 * 30
    assert norm.share == pytest.approx(100.0 / 150.0)
    assert norm.us == pytest.approx(100.0 / 8)


def test_no_share_is_more_than_all() -> None:
    """Two modules that take as long by themselves as their model, in which each finds what the other left in the caches."""
    found = by_device(captured(), MODEL, WORKLOADS, SOURCES, played, rows_of)
    assert [group.share for group in found.groups] == [1.0, 1.0]


@pytest.mark.parametrize("us", [EAGER, {"rows": 300.0, "row": 250.0}], ids=["as fast as watched", "faster than watched"])
def test_a_module_that_no_graph_holds_takes_the_part_that_the_model_takes(us: dict[str, float]) -> None:
    """It keeps its share, however much hooks slowed the host."""

    def record(call: Any) -> Callable[[], Any]:
        if call.func is not MODEL:
            raise NotRecordedError("it waits")
        return played(call)

    found = by_device(captured().model_copy(update={"us": us}), MODEL, WORKLOADS, SOURCES, record, rows_of)
    assert {group.name: group.share for group in found.groups}["norm"] == pytest.approx(1300.0 / 1700.0)


def test_a_module_that_is_given_a_cache_keeps_its_share() -> None:
    """It is not run again: the cache would grow with every run."""
    cached = {**SOURCES, "norm": [replace(one, args=(*one.args, object())) for one in SOURCES["norm"]]}
    found = by_device(captured(), MODEL, WORKLOADS, cached, played, rows_of)
    assert {group.name: group.share for group in found.groups}["norm"] == pytest.approx(1300.0 / 1700.0)


def test_a_model_that_is_no_faster_in_a_graph_keeps_its_times_and_says_why() -> None:
    """So does one that is given an object, which a graph would not see change."""
    busy = captured().model_copy(update={"us": {"rows": 50.0, "row": 10.0}})
    assert by_device(busy, MODEL, WORKLOADS, SOURCES, played, rows_of).groups == busy.groups
    cached = [Workload("rows", (ROWS, object()), {}, 1.0)]
    assert "a cache that grows" in by_device(captured(), MODEL, cached, SOURCES, played, rows_of).clock
