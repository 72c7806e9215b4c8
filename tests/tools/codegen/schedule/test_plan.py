"""A set of operators as one kernel: what was found out once is kept with its graph."""

from __future__ import annotations

import pytest

from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.samples import function
from tools.codegen import LoweringError
from tools.codegen.schedule.plan import TILE, plan_region

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
