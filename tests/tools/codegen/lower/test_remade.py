"""Values that are made again at other positions, and how many of them one kernel may have."""

from __future__ import annotations

import pytest

from tests.tools.codegen.harness import problem_of, trace_problem
from tools.codegen import LoweringError, initial_schedule
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.plan import TILE, plan_region

WAVES = """
import torch

ROWS, WIDTH = 512, 512
SMALL_SIZES = []


def waves(x, y):
    x, y = x.clone(), y.clone()
    for _ in range(5):
        x[:, :-1] -= y[:, 1:] * 0.5 - y[:, :-1].tanh()
        x[:-1] -= y[1:] * 0.5 - y[:-1].tanh()
        y[:, 1:] += x[:, 1:] - x[:, :-1].sigmoid()
        y[1:] += x[1:] - x[:-1].sigmoid()
    return x, y


def example_inputs():
    return torch.rand(ROWS, WIDTH), torch.rand(ROWS, WIDTH)
"""


def test_steps_that_read_their_neighbours_are_several_kernels() -> None:
    """Five steps over a grid in one kernel would make each value hundreds of times: they are refused, and written as several."""
    graph = trace_problem(problem_of(WAVES, "waves"))
    nodes = [node.name for node in graph.nodes if not is_view(node)]
    with pytest.raises(LoweringError, match="made again at other positions"):
        plan_region(graph, nodes, TILE)
    schedule = initial_schedule(graph)
    # of twenty assignments
    assert 1 < len(schedule.regions) < 20
