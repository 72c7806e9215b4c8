"""The coarse cost model against times that were measured on an H200 (benchmarks/kernels/sweeps)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from benchmarks.kernels.cost_model import OPERATORS, SWEEPS, rank, read
from benchmarks.kernels.until_close import Measured
from benchmarks.search.landscape import LANDSCAPES
from tests.tools.codegen.harness import problem_of, trace_problem
from tests.tools.codegen.samples import function
from tools.codegen import Schedule, initial_schedule
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.plan import plan_region
from tools.codegen.templates.pooling.template import Pooling
from tools.codegen.templates.registry import TEMPLATES
from tools.codegen.templates.shared.template import Template
from tools.cost.launch_time import launch_time_us
from tools.cost.launches import region_us
from tools.hardware import load_sheet
from tools.problems import load_problem
from tools.tuning import tunable, tunable_regions
from tools.tuning.ranks import spearman


@cache
def swept(name: str) -> tuple[list[Measured], object]:
    """A recorded sweep with its modelled times."""
    sheet = load_sheet("h200")
    _, operator, found, _ = next(read(SWEEPS / f"{name}.jsonl", OPERATORS, sheet))
    rank(operator, found, sheet, fine=False)
    return found, operator


@pytest.mark.parametrize(("name", "least"), [("max_pool2d", 0.9), ("cross_entropy", 0.6), ("attention", 0.6)])
def test_ranks_like_the_device(name: str, least: float) -> None:
    """Schedules rank by the model much as they were measured."""
    found, _ = swept(name)
    assert spearman([one.us for one in found], [one.coarse_us for one in found]) >= least


@pytest.mark.parametrize("name", ["max_pool2d", "cross_entropy", "attention", "row_mean"])
def test_best_is_among_the_models_eight(name: str) -> None:
    """A schedule within 3 % of the best measured one is among the eight that the model likes best."""
    found, _ = swept(name)
    eight = sorted(found, key=lambda one: one.coarse_us)[:8]
    assert min(one.us for one in eight) <= 1.03 * min(one.us for one in found)


def test_points_hold_the_schedule_as_it_is() -> None:
    """The schedule itself is a point, each point is another schedule, and the cheapest comes first."""
    found, operator = swept("max_pool2d")
    schedule: Schedule = found[0].schedule
    space = tunable(operator.graph, schedule, tunable_regions(schedule), load_sheet("h200"))  # type: ignore[attr-defined]
    assert space.at(space.own) == schedule
    assert len({space.at(point.name).model_dump_json() for point in space.points}) == len(space.points) > 10
    assert [p.predicted_us for p in space.points] == sorted(p.predicted_us for p in space.points)


class Unheard(Pooling):
    """A template that says nothing of its launches."""

    name = "unheard-of"
    launches = Template.launches


def test_library_regions_are_not_modelled() -> None:
    """Of a template that the model does not know it says nothing, and it is not tuned."""
    found, operator = swept("max_pool2d")
    region = found[0].schedule.regions[0]
    planned = plan_region(operator.graph, region.nodes)  # type: ignore[attr-defined]
    assert region_us(replace(planned, template=Unheard()), region.parameters, load_sheet("h200")) is None
    TEMPLATES.append(Unheard())
    tuned = tunable_regions(Schedule(regions=(region.model_copy(update={"template": "unheard-of"}),)))
    TEMPLATES.pop()
    assert tuned == ()


def test_more_bytes_in_flight_are_never_slower() -> None:
    """Little's law: with few bytes in flight the latency decides, with more the bandwidth."""
    sheet = load_sheet("h200")
    times = [launch_time_us(_stream(flight), sheet) for flight in (256.0, 1024.0, 65536.0)]
    assert times[0] > 1.5 * times[1] > 1.5 * times[2]
    assert times[2] >= 1e9 / 4300e3


def test_what_does_not_fit_takes_forever() -> None:
    """A program that asks for more shared memory than there is has no time."""
    assert launch_time_us(_stream(4096.0, shared=300 * 1024.0), load_sheet("h200")) == float("inf")


def test_spearman_averages_ties() -> None:
    """Ranks of equal values are averaged: 1 2 2 against 1 2 3 correlates by 0.866."""
    assert spearman([1, 2, 2], [1, 2, 3]) == pytest.approx(0.8660254)
    assert spearman([3, 2, 1], [1, 2, 3]) == -1


def _stream(flight: float, shared: float = 0.0) -> LaunchWork:
    """A gigabyte by programs of four warps."""
    return LaunchWork(
        programs=100_000,
        warps=4,
        dram_bytes=1e9,
        l2_bytes=1e9,
        flight_bytes=flight,
        steps=1,
        lane_work=1e8,
        registers=128,
        shared_bytes=shared,
    )


@pytest.mark.parametrize(("body", "channels", "us"), [("F.max_pool1d(x, 8, 1, 4, 3)", 192, 1859), ("F.avg_pool1d(x, 8, 1, 4)", 128, 1272)])
def test_four_neighbours_a_thread_come_near_their_measured_time(body: str, channels: int, us: float) -> None:
    """Two poolings are expected within 5 % of what a prototype took on an H200, and before every tile."""
    graph = trace_problem(problem_of(function(body, f"torch.randn(64, {channels}, 65536)")))
    planned, sheet = plan_region(graph, initial_schedule(graph).regions[0].nodes), load_sheet("h200")
    first = region_us(planned, planned.defaults(sheet.sms), sheet)
    tiles = [region_us(planned, {"algorithm": "tile", "ELEMENTS": 8, "num_warps": warps}, sheet) for warps in (1, 2, 4)]
    assert first is not None
    assert first == pytest.approx(us, rel=0.05)
    assert all(tile is not None and first < 0.9 * tile for tile in tiles)


def test_rows_that_are_not_aligned_cost_four_neighbours_their_gain() -> None:
    """Where Triton loads a block one element at a time, a short window is faster as a tile."""
    graph = trace_problem(problem_of(function("F.max_pool2d(x, 3, 1, 1)", "torch.randn(64, 64, 255, 255)")))
    planned, sheet = plan_region(graph, initial_schedule(graph).regions[0].nodes), load_sheet("h200")
    tile, vec4 = (region_us(planned, {"algorithm": name, "ELEMENTS": 8, "num_warps": 1}, sheet) for name in ("tile", "vec4"))
    assert tile is not None
    assert vec4 is not None
    assert vec4 > tile


def test_data_is_labelled() -> None:
    """Every recorded sweep is described beside it with hardware and versions."""
    text = (SWEEPS / "README.md").read_text()
    assert "H200" in text
    assert "triton 3.6.0" in text


@pytest.mark.slow
def test_halves_come_near_their_measured_time() -> None:
    """The schedule of the H200 table that took 977 µs is expected within a tenth, and before every other one."""
    sheet = load_sheet("h200")
    named = {name: (op, found) for name, op, found, _ in read(LANDSCAPES / "h200-operators.jsonl", OPERATORS, sheet)}
    operator, found = named["matmul_bias_gelu"]
    rank(operator, found, sheet, fine=False)
    best = min(found, key=lambda one: one.us)
    assert best.coarse_us == min(one.coarse_us for one in found)
    assert 0.9 < best.coarse_us / best.us < 1.1


def test_steps_of_halves_rank_as_measured() -> None:
    """Steps of 64, 32 and 16 elements took 835, 947 and 1326 µs in matmul_bias_gelu on an H200: expected so, within a seventh."""
    graph = trace_problem(load_problem(OPERATORS / "matmul_bias_gelu.py"))
    planned = plan_region(graph, tuple(node.name for node in graph.nodes if not is_view(node)))
    sheet = load_sheet("h200")
    tile = {**planned.defaults(132), "precision": "fp16x3", "accumulate": "chunked", "BLOCK_M": 128, "BLOCK_N": 128, "num_warps": 8}
    measured = {(64, 3): 835.4, (32, 4): 947.2, (16, 4): 1326.0}
    ratios, expected = [], []
    for (inner, stages), us in measured.items():
        expected.append(region_us(planned, {**tile, "BLOCK_K": inner, "num_stages": stages}, sheet) or 0.0)
        ratios.append(expected[-1] / us)
    assert expected == sorted(expected)
    assert all(6 / 7 < ratio < 8 / 7 for ratio in ratios)


@pytest.mark.parametrize(("precision", "slower"), [("tf32x3", "ieee"), ("tf32", "tf32x3")])
def test_a_convolution_is_modelled_as_the_product_it_is(precision: str, slower: str, tmp_path: Path) -> None:
    """Tensor cores beat ordinary ones, and one product of theirs beats three; by assumption, as no convolution was measured."""
    file = tmp_path / "conv.py"
    body = "torch.nn.functional.conv2d(x, y)"
    file.write_text(function(body, "torch.randn(8, 64, 56, 56), torch.randn(128, 64, 3, 3)", "x, y"))
    graph = trace_problem(load_problem(file))
    planned = plan_region(graph, initial_schedule(graph).regions[0].nodes)
    start, sheet = planned.defaults(132), load_sheet("h200")
    times = [region_us(planned, {**start, "precision": each}, sheet) or 0.0 for each in (precision, slower)]
    assert planned.template.name == "convolution"
    assert 0 < times[0] < times[1]


def test_few_programs_have_the_l1_of_few_multiprocessors() -> None:
    """What programs exchange takes as long for one program as for one on each multiprocessor."""
    sheet = load_sheet("h200")
    one, whole = (
        LaunchWork(
            programs=programs, warps=4, dram_bytes=1e3, l2_bytes=1e3, flight_bytes=1e4, steps=1, lane_work=1e3, exchange_cycles=20_000.0
        )
        for programs in (1, sheet.sms)
    )
    assert launch_time_us(one, sheet) == pytest.approx(launch_time_us(whole, sheet), rel=0.01)
