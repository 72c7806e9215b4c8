"""Numbers that no shape tells, taken from where the reference's constructor keeps them."""

from __future__ import annotations

import ast

from tests.tools.codegen.harness import problem_of, trace_problem
from tools.codegen import emit
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet

SOURCE = """
import torch

ROWS, WIDTH, POINTS, KEPT = 64, 48, 32, 48


class Distance(torch.nn.Module):
    def __init__(self, points):
        super().__init__()
        offset = torch.linspace(0.0, 6.0, points)
        self.coefficient = -0.5 / (offset[1] - offset[0]).item() ** 2
        self.register_buffer("offset", offset)

    def forward(self, x):
        return torch.exp(self.coefficient * (x[..., None] - self.offset) ** 2).sum(-1)


class Model(torch.nn.Module):
    def __init__(self, points, kept):
        super().__init__()
        self.distance = Distance(points)
        self.kept = kept

    def forward(self, x):
        return torch.topk(self.distance(x), min(self.kept, x.shape[1]))[0]


def get_inputs():
    return [torch.rand(ROWS, WIDTH) * 6]


def get_init_inputs():
    return [POINTS, KEPT]
"""


def test_what_only_a_constructor_knows_is_read_off_the_module() -> None:
    """A float that it works out, and a number that is a size by chance, are the emitted module's own attributes at any size."""
    problem = problem_of(SOURCE, "attributes")
    graph = trace_problem(problem)
    assert [each.text for each in graph.attributes] == ["kept", "distance.coefficient"]
    source = emit(problem, graph, modelled_choices(graph, load_sheet("h100"), problem.policy)[0].schedule).source
    module = next(node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == "ModelNew")
    forward = ast.unparse(module.body[-1])
    assert "self.distance.coefficient" in forward
    assert "kept" in ast.unparse(module.body[1])
