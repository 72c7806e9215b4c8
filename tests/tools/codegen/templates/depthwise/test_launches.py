"""What the model says of depthwise convolutions: the lines of their loads, and what more rows a lane save."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tools.codegen.compute_samples import DIRECT
from tests.tools.codegen.harness import traced_text
from tools.codegen import initial_schedule
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.schedule.plan import Planned, plan_region
from tools.codegen.templates.depthwise.launches import WARP, warp_lines
from tools.codegen.templates.registry import knobs_of
from tools.cost.launches import region_launches
from tools.hardware import load_sheet, rates

SHEET = load_sheet("h200")
NAMES = [name for name in DIRECT if name.startswith("depthwise")]


def planned(name: str) -> Planned:
    """Plan a sample's convolution."""
    graph = traced_text(DIRECT[name])[1]
    return plan_region(
        graph, next(region.nodes for region in initial_schedule(graph).regions if "conv" in graph.by_name[region.nodes[0]].op)
    )


def shape(name: str, block_m: int, block_n: int, warps: int) -> LaunchWork:
    """Model a sample with these settings."""
    (found,) = region_launches(planned(name), {"BLOCK_M": block_m, "BLOCK_N": block_n, "num_warps": warps}, SHEET)
    return found


@pytest.mark.parametrize(
    ("warps", "loads", "rows", "columns", "apart", "measured_us"),
    [
        # 5x5, stride 2, 6720 planes of 112x112: tiles of 16 rows and 128 columns, of which 112 are there; 16 rows of two columns a warp
        (6720 * 7 * 4, 14 * 25, 16, 2, 8, 4196),
        # 3x7, 4096 planes of 126x250: tiles of 4 rows and 128 columns, four elements a thread
        (4096 * 32 * 2 * 4, 4 * 21, 1, 32, 16, 1464),
    ],
)
def test_lines_explain_what_was_measured(warps: int, loads: int, rows: int, columns: int, apart: int, measured_us: float) -> None:
    """Two kernels whose lanes lay far apart took as long on an H200 as their loads' lines do at one a clock, within a fifth."""
    assert rows * columns == WARP
    us = warps * loads * warp_lines(columns, apart) / rates.L1_LINES_PER_CLOCK / SHEET.sms / SHEET.clock_mhz
    assert measured_us <= us <= 1.2 * measured_us


def test_lines_follow_the_lanes() -> None:
    """Neighbours share lines; with a stride they share fewer, and rows of few columns have lines of their own."""
    assert 1 < warp_lines(32, 4) < 2 < warp_lines(32, 8) < 3
    assert warp_lines(8, 4) > 2 * warp_lines(32, 4)
    assert warp_lines(1, 4) == warp_lines(32, 4096) == 32


def test_more_rows_a_lane_share_what_they_read() -> None:
    """A lane that walks twice as far looks up fewer lines for each result, and one that gathers looks up as many."""

    def lines(name: str, block_m: int) -> float:
        return shape(name, block_m, 32, 1).exchange_cycles / block_m

    assert lines("depthwise", 8) < 0.9 * lines("depthwise", 4)
    assert lines("depthwise_lines", 8) == pytest.approx(lines("depthwise_lines", 4))


@pytest.mark.parametrize("name", NAMES)
def test_first_values_are_legal(name: str) -> None:
    """The coder's own first values are among a knob's, and every setting that the search may take has a lane for each column."""
    plan = planned(name)
    first: dict[str, Any] = plan.defaults(SHEET.sms)
    assert all(first[knob] in knobs_of("depthwise")[knob].values for knob in first)
    for width in knobs_of("depthwise")["BLOCK_N"].values:
        if plan.fits({**first, "BLOCK_N": width}, "BLOCK_N", SHEET):
            assert int(width) <= 32 * first["num_warps"]
