"""What the model says of row kernels whose results lie otherwise than what they read."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.samples import function
from tools.codegen.schedule.plan import Planned, plan_region
from tools.codegen.templates.rows.launches import ACROSS_AGAIN, row_launches
from tools.cost.launch_time import launch_time_us
from tools.hardware import load_sheet

SHEET = load_sheet("h100")


def planned(body: str, shape: str) -> Planned:
    """Lower a function of one tensor as one region."""
    _, graph = traced_text(function(body, f"torch.randn({shape})"))
    return plan_region(graph, [node.name for node in graph.nodes if node.op not in ("permute", "contiguous", "clone", "unfold")])


def bytes_of(region: Planned, **parameters: Any) -> list[float]:
    """Bytes that each launch moves from and to memory."""
    return [one.dram_bytes for one in row_launches(region.kernel, {**region.defaults(132), **parameters}, SHEET)]


@pytest.mark.parametrize(("positions", "partly"), [(1681, True), (1600, False)])
def test_results_side_by_side_cost_sectors_that_are_filled_in_part(positions: int, partly: bool) -> None:
    """Few rows a program, written side by side from anywhere, share sectors with other programs; runs that begin with sectors do not."""
    region = planned("(torch.softmax(x, -1).permute(0, 2, 1) * 2).contiguous() + 0", f"16, {positions}, 64")
    few, many = (bytes_of(region, algorithm="registers", ROWS=rows)[0] for rows in (8, 64))
    assert (few > 1.5 * many) == partly


def test_results_of_split_rows_are_written_by_the_launch_that_combines() -> None:
    """The first launch reads rows that lie across memory; the second reads and writes them, at less than a copy's rate."""
    source = "((x - x.mean((0, 1))) * 3)"
    summed, combined = bytes_of(planned(source, "64, 4096, 32"), algorithm="split", ROWS=16, BLOCK_N=32, SPLITS=64)
    whole = 64 * 4096 * 32 * 4.0
    assert summed == pytest.approx(whole, rel=0.01)
    assert combined == pytest.approx(2 * ACROSS_AGAIN * whole, rel=0.01)


def test_channels_that_are_walked_twice_and_written_last_fill_sectors_in_part() -> None:
    """A program has one channel of many: where channels lie last in the result each of its sectors is written eight times."""
    body, setting = "x - x.mean((0, 2, 3), keepdim=True)", {"algorithm": "l2_two_pass", "ROWS": 1, "BLOCK_N": 1024, "SPLITS": 64}
    first, last = (planned(text, "8, 64, 112, 112") for text in (f"({body}) * 2", f"(({body}).permute(0, 2, 3, 1) * 2).contiguous() + 0"))
    assert sum(bytes_of(last, **setting)) > 5 * sum(bytes_of(first, **setting))


def test_windows_are_read_one_element_at_a_time_and_from_memory_once() -> None:
    """They begin anywhere, so that no lane loads four neighbours: on sm_90 64 windows of 20 run 38 instructions an element."""
    windows, apart = (planned("x.unfold(1, 20, 1).amax(-1)", "2048, 1260"), planned("x.amax(-1)", "2048, 1241, 20"))
    setting = {"algorithm": "registers", "ROWS": 64, "BLOCK_N": 32, "num_warps": 1}
    moved, copied = (bytes_of(region, **setting)[0] for region in (windows, apart))
    assert moved == pytest.approx(2048 * (1260 + 1241) * 4, rel=0.01)
    assert copied == pytest.approx(2048 * 1241 * 21 * 4, rel=0.01)
    (work,) = row_launches(windows.kernel, {**windows.defaults(132), **setting}, SHEET)
    assert work.lane_work / (work.programs * 64 * 32) == pytest.approx(38, rel=0.15)


def test_each_reduction_of_a_narrow_row_is_an_exchange_of_its_lanes() -> None:
    """Eight lanes share a row of 32 where each holds four: three steps of two instructions, whatever is reduced."""
    one, three = (
        row_launches(region.kernel, {**region.defaults(132), "algorithm": "registers", "ROWS": 16, "num_warps": 1}, SHEET)[0]
        for region in (planned(text, "2048, 1241, 32") for text in ("x.sum(-1)", "x.sum(-1) + x.amax(-1) + x.amin(-1)"))
    )
    elements = 2048 * 1241 * 32
    assert (three.lane_work - one.lane_work) / elements >= 2 * 3 * 2 * 8 / 32


def work_of(body: str, warps: int, columns: int = 1024) -> float:
    """Count the instructions of rows that are in registers."""
    region = planned(body, f"512, {columns}")
    settings = {**region.defaults(132), "algorithm": "registers", "ROWS": 1, "num_warps": warps}
    return row_launches(region.kernel, settings, SHEET)[0].lane_work


def test_what_is_made_of_a_sum_is_made_once_a_row() -> None:
    """A logarithm of a row's sum costs each lane 25 instructions, one of each element 25 for each that the lane has."""
    plain = work_of("x.sum(-1)", 4)
    assert work_of("x.sum(-1).log()", 4) - plain == pytest.approx(25 * 512 * 128)
    assert work_of("x.log().sum(-1)", 4) - plain == pytest.approx(25 * 512 * 1024)


def test_long_formulas_of_many_elements_take_longer_than_their_instructions() -> None:
    """The code of 64 elements a thread does not fit the cache of instructions, that of four does."""
    body = "(x.lgamma() + x.digamma()).sum(-1)"
    assert work_of(body, 4, 8192) > 4 * work_of(body, 32, 4096)


def test_sums_and_short_numbers_are_counted() -> None:
    """On sm_90 (Triton 3.6) norms of 2,048 halves in 4 and 8 warps run 224 and 165 instructions a lane, softmaxes of floats 344 and 231."""
    halves = function("F.rms_norm(x, (2048,), y, 1e-6)", "torch.randn(512, 2048).bfloat16(), torch.randn(2048).bfloat16()", "x, y")
    for source, counted in ((halves, {4: 224, 8: 165}), (function("x.softmax(-1)", "torch.randn(512, 2048)"), {4: 344, 8: 231})):
        _, graph = traced_text(source)
        region = plan_region(graph, [node.name for node in graph.nodes])
        for warps, instructions in counted.items():
            settings = {**region.defaults(132), "algorithm": "registers", "ROWS": 1, "num_warps": warps}
            work = row_launches(region.kernel, settings, SHEET)[0]
            assert work.lane_work / work.programs / warps / 32 == pytest.approx(instructions, rel=0.15)


def test_warps_that_lie_along_the_columns_exchange_what_they_reduce() -> None:
    """Softmaxes of 16 with neighbours in memory are fastest in one warp: on an H200 4 and 8 warps took 3.6 and 6.7 times as long."""
    region = planned("(torch.softmax(x, 1) * x).sum(1)", "64, 16, 8400")
    one, two, four, eight = (
        launch_time_us(row_launches(region.kernel, {**region.defaults(132), "ROWS": 128, "num_warps": warps}, SHEET)[0], SHEET)
        for warps in (1, 2, 4, 8)
    )
    assert one < two < four < eight
    assert eight > 4 * one
