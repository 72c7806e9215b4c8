"""Sectors are counted as memory moves them: 32 bytes at once, wanted or not."""

from __future__ import annotations

import pytest

from tests.tools.codegen.compute_samples import reference
from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.samples import function
from tools.codegen import initial_schedule
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.plan import TILE, plan_region
from tools.codegen.templates.pointwise.launches import pointwise_launches
from tools.codegen.templates.shared.sectors import Step, sectors, wasted
from tools.cost.launches import region_us
from tools.hardware import load_sheet

SHEET = load_sheet("h200")
TURNED = function("x.transpose(1, 2) * y", "torch.randn(64, 512, 512), torch.randn(64, 512, 512)", "x, y")


@pytest.mark.parametrize(
    ("steps", "item", "wanted"),
    [
        ([(1, 1024)], 4, 128),
        ([(64, 1024)], 4, 1024),
        ([(1, 32), (512, 32)], 2, 64),
        ([(512, 32), (1, 32)], 2, 64),
        ([(None, 16), (1, 128)], 2, 128),
        ([(0, 64), (1, 8)], 4, 1),
        ([(2, 64)], 4, 16),
    ],
    ids=["beside", "apart", "tile", "turned", "rows_anywhere", "the_same", "every_other"],
)
def test_a_tile_touches_whole_sectors(steps: list[Step], item: int, wanted: int) -> None:
    """Neighbours in memory share sectors; others have one each."""
    assert sectors(steps, item) == wanted


def test_bytes_come_along_only_where_runs_are_shorter_than_a_sector() -> None:
    """A float by itself moves seven more; a run of 40 bytes shares the rest of its sectors with its neighbours."""
    assert wasted([(64, 1024)], 4) == 7.0
    assert wasted([(1, 10), (10, 3)], 4) == 0.0


def test_a_transposed_operand_costs_a_vector_more_than_a_turned_tile() -> None:
    """The model expects less of a kernel that reads each operand along its own order than of one that follows the result's."""
    graph = traced_text(TURNED)[1]
    (region,) = initial_schedule(graph).regions
    vector, tile = plan_region(graph, region.nodes), plan_region(graph, region.nodes, TILE)
    assert vector.template.name == "pointwise"
    slow, fast = (region_us(planned, planned.defaults(SHEET.sms), SHEET) or 0.0 for planned in (vector, tile))
    assert 0.0 < 1.25 * fast < slow


def test_a_piece_whose_neighbours_lie_apart_is_counted_by_sectors() -> None:
    """Joined channels of which half lie last in memory move seven more floats for each of that half."""
    shapes = {"beside": "(1, 32, 4096)", "apart": "(1, 4096, 32)"}
    moved = {}
    for name, shape in shapes.items():
        piece = "x" if name == "beside" else "x.permute(0, 2, 1)"
        _, graph = traced_text(reference(f"torch.cat([{piece} + 1, y], 1)", f"torch.randn{shape}, torch.randn(1, 32, 4096)", "x, y"))
        planned = plan_region(graph, tuple(node.name for node in graph.nodes if not is_view(node)))
        settings = {"algorithm": "tile", "ELEMENTS": 8, "num_warps": 4}
        (moved[name],) = (work.l2_bytes for work in pointwise_launches(planned.kernel, settings))
    assert moved["apart"] - moved["beside"] == 7 * 32 * 4096 * 4
