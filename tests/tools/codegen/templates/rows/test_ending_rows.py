"""Programs that only put partial results of split rows together."""

from __future__ import annotations

from tests.tools.codegen.compute_samples import module
from tests.tools.codegen.harness import traced_text
from tools.codegen import Schedule, emit
from tools.codegen.ir.schedule import Region
from tools.codegen.schedule.plan import plan_region
from tools.codegen.templates.rows.partial_results import HELD_PARTS, ending_rows
from tools.cost.launches import region_launches
from tools.hardware import load_sheet

SPLIT = {"algorithm": "split", "ROWS": 32, "BLOCK_N": 64, "UNROLL": 1, "SPLITS": 1024, "num_warps": 4, "num_stages": 1}


def test_few_rows_of_many_parts_are_put_together_by_a_program() -> None:
    """Of 32 rows in 1024 parts each a program combines four, which is what its registers hold; the model counts as many programs."""
    problem, graph = traced_text(module("pass", "return x.sum(dim=0)", "torch.randn(2**17, 32)"))
    schedule = Schedule(regions=(Region(id="r0", nodes=("sum_1",), template="rows", parameters=SPLIT),))
    source = emit(problem, graph, schedule).source
    assert ending_rows(32, 1024) * 1024 == HELD_PARTS
    assert "[(cdiv(n_rows, 4),)]" in source
    ending = region_launches(plan_region(graph, ("sum_1",)), SPLIT, load_sheet("h100"))[-1]
    assert ending.programs == 8
    assert ending.registers < 255
