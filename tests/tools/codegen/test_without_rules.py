"""Operators without a rule are read as what PyTorch makes them of, where kernels then hold all of it."""

from __future__ import annotations

import pytest

from tests.tools.codegen.harness import problem_of, traced_text
from tests.tools.codegen.samples import function
from tools.codegen import emit, initial_schedule
from tools.codegen.ir.graph import Formula
from tools.codegen.schedule.plan import can_generate
from tools.codegen.without_rules import canonical, without_kernels

CROSS = function("torch.cross(x[:, :3], x[:, 3:6], dim=1) + 1")


def test_an_operator_without_a_rule_is_written_out() -> None:
    """A cross product becomes gathers, products and a difference, all of them one region that a kernel holds."""
    _, graph = traced_text(CROSS)
    assert "cross" not in {node.op for node in graph.nodes}
    (region,) = initial_schedule(graph).regions
    assert can_generate(graph, region.nodes)


def test_what_kernels_cannot_hold_either_stays_whole() -> None:
    """A mode is made of nothing simpler, and an inverse of nothing that a kernel holds: both stay single calls."""
    graph = canonical(problem_of(function("torch.linalg.inv(x[:33, :33]) + torch.mode(x, 1)[0]"))).graph
    assert without_kernels(graph) == {"aten.linalg_inv.default", "aten.mode.default"}


def test_each_operator_is_weighed_by_itself() -> None:
    """An operator that gains nothing does not keep another one whole."""
    _, graph = traced_text(function("torch.mode(torch.nan_to_num(x), 1)[0]"))
    assert {node.op for node in graph.nodes} >= {"mode", "isnan", "where"}


def test_numbers_and_positions_make_no_region() -> None:
    """An identity matrix, and numbers given in a list, are computed where they are read: one region is left."""
    _, graph = traced_text(function("x[:, :6] * torch.tensor([8, 8, 8, 5, 5, 5]) + torch.eye(ROWS)[:, :6]"))
    assert len(initial_schedule(graph).regions) == 1
    assert any(isinstance(node, Formula) for node in graph.nodes)


@pytest.mark.parametrize("text", ["x[:, :3] @ w", "F.linear(x[:, :3], w.t())", "torch.bmm(x[:, None, :3], w.expand(ROWS, 3, 3))"])
def test_a_product_over_few_elements_joins_what_is_around_it(text: str) -> None:
    """Sums of three products are written out, in one kernel with the operators before and after them."""
    _, graph = traced_text(function(f"torch.relu({text.replace('x[', '(x * 2)[')})", "torch.randn(ROWS, COLS), torch.randn(3, 3)", "x, w"))
    assert [can_generate(graph, region.nodes) for region in initial_schedule(graph).regions] == [True]


def test_positions_along_what_no_tensor_has_are_read() -> None:
    """A kernel that reads no tensor of a mask's length is given the positions themselves, which tell it."""
    _, graph = traced_text(function("torch.arange(2 * y.shape[1]) >= x[:, :1]", "torch.randn(ROWS, 3), torch.randn(4, COLS)", "x, y"))
    (node,) = (each for each in graph.nodes if each.op == "ge")
    assert can_generate(graph, (node.name,))


def test_the_same_bits_in_another_dtype_are_no_other_shape() -> None:
    """A view of floats as whole numbers is made by the host: a kernel that read the floats would round them."""
    problem, graph = traced_text(function("(x.view(torch.int32) & -65536).view(torch.float32) * 2"))
    assert [node.op for node in graph.nodes if node.op in ("view", "bits")] == ["bits", "bits"]
    assert len(initial_schedule(graph).regions) == 2
    assert "x.view(torch.int32)" in emit(problem, graph, initial_schedule(graph)).source
