"""What the warps of a tile pass one another through shared memory."""

from __future__ import annotations

from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.samples import function
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.plan import TILE, plan_region
from tools.codegen.templates.tile.laid import Laid
from tools.codegen.templates.tile.orders import passed
from tools.codegen.templates.tile.placement import tile_layout_of
from tools.codegen.templates.tile.tiling import Tiling
from tools.hardware import load_sheet

PAIRS = function("(x[:, None] == x[None, :]).view(128, 2, 8, 8).any(3).any(2)", "torch.randint(0, 9, (128,))")


def test_sums_of_several_warps_cost_the_more_a_thread_has_of_them() -> None:
    """Results of a thread lie side by side, and those of its neighbours in the same banks: 32 take 16 times as long as 8."""
    assert passed(4, 32, 1, 4) == 2 * 4 * 32 * 32
    assert passed(4, 8, 1, 1) * 16 == passed(4, 32, 1, 1)


def test_lanes_that_share_a_sum_ask_for_one_bank() -> None:
    """A warp that has added up a sum in all its lanes stores it once, and waits for no bank; without shared sums each lane has its own."""
    assert passed(8, 8, 1, 8, lanes=1) * 32 == passed(8, 8, 1, 8)


def test_warps_along_what_is_summed_pass_it_on() -> None:
    """The same tile in four warps exchanges what one warp adds up by itself."""
    _, graph = traced_text(PAIRS, "pairs")
    planned = plan_region(graph, [node.name for node in graph.nodes if not is_view(node)], TILE)
    first = {**planned.template.defaults(planned.kernel, 132), "algorithm": "tile", "BLOCK_M": 4, "BLOCK_N": 2}
    cycles = [
        sum(each.exchange_cycles for each in planned.template.launches(planned.kernel, first | {"num_warps": warps}, load_sheet("h100")))
        for warps in (1, 4)
    ]
    assert cycles[1] > 4 * cycles[0]


POINTS = function("(x[:, None] - x[None]).square().sum((-1, -2)).softmax(1)", "torch.randn(64, 4, 3)")


def test_rows_of_merged_dimensions_are_read_as_widely_as_they_allow() -> None:
    """Four points of three coordinates are twelve numbers side by side: a lane takes four of them, and hands few to others."""
    _, graph = traced_text(POINTS, "points")
    planned = plan_region(graph, [node.name for node in graph.nodes if not is_view(node)], TILE)
    parameters = {**planned.template.defaults(planned.kernel, 132), "algorithm": "tile", "BLOCK_M": 1, "BLOCK_N": 1, "num_warps": 1}
    lanes = Laid(Tiling(tile_layout_of(planned.kernel), parameters)).lanes
    assert any(lanes.of(kind).held.get(dim) == 4 and lanes.of(kind).lanes.get(dim) == 4 for kind in lanes.kinds for dim in kind)


def test_a_step_that_is_no_power_of_two_is_made_as_the_next_one() -> None:
    """1,100 elements of a row take the instructions of 2,048: masked ones are made, too."""
    work = []
    for columns in (1100, 2048):
        _, graph = traced_text(function("(x + 1.0).sum(1)", f"torch.randn(64, {columns})"))
        planned = plan_region(graph, [node.name for node in graph.nodes if not is_view(node)], TILE)
        first = {**planned.template.defaults(planned.kernel, 132), "algorithm": "flat", "reduction": "looped", "BLOCK_N": 1}
        settings = first | {"BLOCK_K": 2048, "num_warps": 32}
        work.append(planned.template.launches(planned.kernel, settings, load_sheet("h100"))[0].lane_work)
    assert work[0] == work[1]
