"""A set of operators as one kernel: what was found out once is kept with its graph."""

from __future__ import annotations

import pytest

from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.samples import function
from tools.codegen import LoweringError
from tools.codegen.schedule.plan import TILE, belong_together, plan_region

CHAIN = function("torch.exp(x) * 2", "torch.randn(5, 7)")
INVERSE = function("torch.linalg.inv(x) + 1", "torch.randn(6, 6)")


def test_a_set_is_planned_once() -> None:
    """Asked again, in any order, the answer is the same object; for tiles it is another one."""
    _, graph = traced_text(CHAIN)
    one, two = (node.name for node in graph.nodes)
    found = plan_region(graph, (one, two))
    assert plan_region(graph, (two, one)) is found
    assert plan_region(graph, (one, two), found.template.name) is found
    assert plan_region(graph, (one, two), TILE) is not found


def test_a_reason_is_told_again() -> None:
    """What cannot be one kernel says why each time."""
    _, graph = traced_text(INVERSE)
    reasons = []
    for _ in range(2):
        with pytest.raises(LoweringError) as error:
            plan_region(graph, (graph.nodes[0].name,))
        reasons.append(str(error.value))
    assert reasons[0] == reasons[1] != ""


@pytest.mark.parametrize(("rows", "together"), [(4, True), (1 << 16, False)])
def test_a_sum_that_is_spread_over_many_rows_is_made_once(rows: int, together: bool) -> None:
    """For a few rows it is made again in each: that takes less than a launch."""
    _, graph = traced_text(function("x + torch.sum(y * y)", f"torch.randn({rows}, 1), torch.randn(64)", "x, y"))
    assert belong_together(graph, [node.name for node in graph.nodes]) is together
