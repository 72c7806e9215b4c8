"""What the warps of a tile pass one another through shared memory."""

from __future__ import annotations

from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.samples import function
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.plan import TILE, plan_region
from tools.codegen.templates.tile.orders import passed
from tools.hardware import load_sheet

PAIRS = function("(x[:, None] == x[None, :]).view(128, 2, 8, 8).any(3).any(2)", "torch.randint(0, 9, (128,))")


def test_sums_of_several_warps_cost_the_more_a_thread_has_of_them() -> None:
    """Results of a thread lie side by side, and those of its neighbours in the same banks: 32 take 16 times as long as 8."""
    assert passed(4, 32, 1, 4) == 2 * 4 * 32 * 32
    assert passed(4, 8, 1, 1) * 16 == passed(4, 32, 1, 1)


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
