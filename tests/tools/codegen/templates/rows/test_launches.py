"""What the model says of row kernels whose results lie otherwise than what they read."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.samples import function
from tools.codegen.schedule.plan import Planned, plan_region
from tools.codegen.templates.rows.launches import ACROSS_AGAIN, row_launches
from tools.hardware import load_sheet

SHEET = load_sheet("h100")


def planned(body: str, shape: str) -> Planned:
    """Lower a function of one tensor as one region."""
    _, graph = traced_text(function(body, f"torch.randn({shape})"))
    return plan_region(graph, [node.name for node in graph.nodes if node.op not in ("permute", "contiguous", "clone")])


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
