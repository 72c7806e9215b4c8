"""What a compiler would take, estimated."""

from __future__ import annotations

from pathlib import Path

from tests.tools.models.test_choice import group
from tools.codegen import trace
from tools.cost.compiled import compiled_call, compiled_graph, compiled_reference
from tools.hardware import load_sheet
from tools.models.choosing.choice import problem_of
from tools.problems import load_problem
from tools.records import DEFAULT_POLICY, Problem, Work

LOOP = """import torch
from torch import nn

STEPS, ROWS = 24, 4


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x):
        state, found = torch.zeros_like(x[:, 0]), []
        for step in range(STEPS):
            state = torch.tanh(self.inner(state) + x[:, step])
            found.append(state)
        return torch.stack(found, 1)


def get_inputs():
    return [torch.randn(ROWS, STEPS, 8)]


def get_init_inputs():
    return []
"""


def problem(*operators: str) -> Problem:
    """Operators on eight MiB."""
    trace = group("some", ("a",), 0.5, 100.0).trace
    assert trace is not None
    work: Work = trace.work.model_copy(update={"operators": operators})
    return problem_of("some", trace.model_copy(update={"work": work}), DEFAULT_POLICY)


def test_operators_between_products_are_one_launch() -> None:
    """Three in a row take as long as one of them; a product among them parts them."""
    sheet = load_sheet("h200")
    exp, mm = "aten.exp.default", "aten.mm.default"
    row, parted = problem(exp, exp, exp), problem(exp, mm, exp)
    fused, apart = compiled_reference(row, sheet), compiled_reference(parted, sheet)
    assert fused.compiled_us < 0.5 * fused.eager_us
    assert apart.compiled_us == apart.eager_us


def test_a_loop_around_a_product_is_not_one_launch_of_a_compiler(tmp_path: Path) -> None:
    """It is for our kernels, by which its graph is modelled."""
    file, sheet = tmp_path / "loop.py", load_sheet("h200")
    file.write_text(LOOP)
    problem = load_problem(file, policy=DEFAULT_POLICY)
    graph = trace(problem)
    left, ours = compiled_call(problem, graph, sheet, DEFAULT_POLICY), compiled_graph(graph, sheet, DEFAULT_POLICY)
    assert left is not None
    assert ours is not None
    assert ours.compiled_us < 0.1 * left.compiled_us < 0.1 * left.eager_us
