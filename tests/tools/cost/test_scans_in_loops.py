"""What a scan inside of a loop costs: how often a thread combines two parts, one after the other."""

from __future__ import annotations

from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.loop_samples import SCANNED
from tools.codegen import initial_schedule
from tools.codegen.schedule.plan import plan_region
from tools.cost.launches import region_us
from tools.hardware import load_sheet

WIDE = SCANNED.replace("BATCH = 3\nSTEPS = 20\nDIM = 24", "BATCH = 64\nSTEPS = 20\nDIM = 512")
SETTINGS = {"algorithm": "sequential", "CHUNK": 64, "ROWS": 1, "precision": "tf32x3", "num_stages": 2}


def test_many_warps_are_not_the_fastest_where_each_walks_those_before() -> None:
    """512 elements of a row are scanned faster by 4 warps than by 16, whose totals each thread goes through, or by one."""
    graph = traced_text(WIDE, "scanned")[1]
    (loop,) = (node.name for node in graph.nodes if node.target == "loop.recurrence.default")
    region = next(region for region in initial_schedule(graph).regions if loop in region.nodes)
    planned, sheet = plan_region(graph, region.nodes, "recurrence"), load_sheet("h100")
    times = {warps: region_us(planned, {**SETTINGS, "num_warps": warps}, sheet) for warps in (1, 4, 16)}
    assert times[4] < min(times[1], times[16])
