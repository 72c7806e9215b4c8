"""A set of operators as one kernel: what was found out once is kept with its graph."""

from __future__ import annotations

import pytest

from tests.tools.codegen.harness import generated, traced_at_all_sizes, traced_text
from tests.tools.codegen.samples import function
from tools.codegen import LoweringError, emit, limits
from tools.codegen.ir.graph import Formula
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


ANGLES = """import torch

SIDE = 6
WIDTH = 8


def angles(x):
    at = torch.arange(x.shape[1], device=x.device, dtype=torch.float32)
    rate = 100.0 ** (-torch.arange(0, x.shape[2], device=x.device).float() / x.shape[2])
    table = at[:, None] * rate
    return x * table.cos() + table.sin(), (x - at.square()[:, None]) * (at[:, None] - 2) ** 2


def example_inputs():
    return (torch.randn(3, SIDE, WIDTH),)
"""


def test_a_table_of_positions_is_made_by_one_kernel() -> None:
    """Powers of positions that several kernels read are made without the tensors of positions that PyTorch would make first."""
    problem, graph = traced_text(ANGLES)
    source = emit(problem, graph, generated(graph, {})).source
    assert not limits(graph)
    assert "torch.ops" not in source
    assert "torch.neg" not in source


def test_small_powers_of_positions_are_no_tables() -> None:
    """A square of positions is a multiplication in the kernel that reads it."""
    _, graph = traced_text(ANGLES)
    squares = [node for node in graph.nodes if node.op in ("pow", "square") and 100.0 not in node.args]
    assert len(squares) == 2
    assert all(isinstance(node, Formula) for node in squares)


WINDOWS = """import torch

WINDOW = 6
SMALL_SIZES = [{"WINDOW": 3}, {"WINDOW": 4}]


class Model(torch.nn.Module):
    def __init__(self, window):
        super().__init__()
        self.window = window

    def forward(self, x):
        return x.unfold(1, self.window, 1).amax(-1)


def get_inputs():
    return [torch.randn(5, 40)]


def get_init_inputs():
    return [WINDOW]
"""


def test_windows_tell_their_length_and_are_not_copied() -> None:
    """How long they are only the constructor knows: the kernel reads what the windows are of, and takes the view for its shape alone."""
    _, graph = traced_text(WINDOWS)
    planned = plan_region(graph, ("amax",), "tile")
    assert [load.ref.name for load in planned.kernel.builder.loads] == ["x", "unfold"]
    text = planned.template.emit(planned.kernel, "windows", planned.defaults(132)).source
    assert "n_k = unfold.shape[" in text
    assert "unfold.contiguous" not in text


PATCHES = """import torch
from torch import nn

BATCH = 16
SIDE = 56
WINDOW = 7
DIM = 128
SMALL_SIZES = [{"BATCH": 1, "SIDE": 6, "WINDOW": 3, "DIM": 10}, {"BATCH": 2, "SIDE": 8, "WINDOW": 4, "DIM": 32}]


class Model(nn.Module):
    def __init__(self, dim, window):
        super().__init__()
        self.net = nn.Linear(dim, 3 * dim)
        self.window = window

    def forward(self, x):
        b, h, w, c = x.shape
        x = torch.roll(x, (-1, -1), (1, 2)).view(b, h // self.window, self.window, w // self.window, self.window, c)
        return self.net(x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, self.window * self.window, c))


def get_inputs():
    return [torch.randn(BATCH, SIDE, SIDE, DIM)]


def get_init_inputs():
    return [DIM, WINDOW]
"""


def test_a_product_whose_rows_no_tensor_tells_is_given_what_the_constructor_kept() -> None:
    """Rows are windows of a rolled picture, whose side only the constructor knows."""
    problem, graph = traced_at_all_sizes(PATCHES)
    linear = next(node.name for node in graph.nodes if node.op == "linear")
    planned = plan_region(graph, (linear,))
    assert planned.template.name == "matmul"
    assert not planned.template.weights(planned.kernel)
    assert "self.window)" in emit(problem, graph, generated(graph, {})).source


def test_a_product_whose_rows_nothing_tells_is_left_to_the_library() -> None:
    """Where the constructor keeps the side in no number of its own, the reason is told."""
    hidden = PATCHES.replace("self.window = window", "self.kept = [window]").replace("self.window", "self.kept[0]")
    _, graph = traced_at_all_sizes(hidden)
    linear = next(node.name for node in graph.nodes if node.op == "linear")
    with pytest.raises(LoweringError, match="cannot be told from the shapes"):
        plan_region(graph, (linear,))


MARKED = """
import torch

PLACES = 64
SMALL_SIZES = [{"PLACES": 16}, {"PLACES": 40}]


def marked(x):
    index = x.topk(x.shape[1] // 8, 1).indices
    return torch.zeros_like(x).scatter_(1, index, 1.0)


def example_inputs():
    return (torch.randn(3, PLACES),)
"""


def test_what_is_filled_and_written_into_has_the_size_of_an_input_that_has_it() -> None:
    """Eight times as many places as were picked are all in every trace, and not where a remainder is left: the input tells them."""
    _, graph = traced_at_all_sizes(MARKED)
    (scatter,) = (node.name for node in graph.nodes if node.op == "scatter")
    planned = plan_region(graph, (scatter,), TILE)
    source = planned.template.emit(planned.kernel, "marked", planned.defaults(132)).source
    assert "torch.full((3, x.shape[1]), 0" in source
