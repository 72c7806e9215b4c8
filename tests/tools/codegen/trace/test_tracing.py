"""What is traced at few steps, and what is traced as written."""

from __future__ import annotations

import pytest

from tests.tools.codegen.harness import problem_of, traced_at_all_sizes
from tests.tools.codegen.samples import function
from tools.codegen import LoweringError, trace
from tools.codegen.ir.loop import Loop
from tools.codegen.rewrite.canonicalize import canonicalize
from tools.codegen.schedule.plan import plan_region

BLOCKS = """
import torch

ROWS, WIDTH, BLOCKS = 32, 64, 24


class Model(torch.nn.Module):
    def __init__(self, width, blocks):
        super().__init__()
        self.blocks = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(blocks))

    def forward(self, x):
        for block in self.blocks:
            x = x + torch.tanh(block(x))
        return x


def get_inputs():
    return [torch.rand(ROWS, WIDTH)]


def get_init_inputs():
    return [WIDTH, BLOCKS]
"""


def test_blocks_with_weights_of_their_own_are_no_loop() -> None:
    """A network whose constant says how many blocks it has is traced as written: its blocks read different weights."""
    graph = trace(problem_of(BLOCKS, "blocks"))
    assert not graph.blocked
    assert not any(isinstance(node, Loop) for node in graph.nodes)
    assert [node.op for node in graph.nodes].count("linear") == 24


CELL = """
import torch

ROWS, WIDTH, STEPS = 4, 8, 24
SMALL_SIZES = [{"STEPS": 7}]


def cell(x, state, weight):
    for step in range(STEPS):
        state = torch.tanh(torch.cat([x[:, step], state], 1) @ weight)
    return state


def example_inputs():
    return torch.rand(ROWS, STEPS, WIDTH), torch.rand(ROWS, WIDTH), torch.rand(2 * WIDTH, WIDTH)
"""


def test_a_step_that_concatenates_is_left_in_words() -> None:
    """A loop whose step no kernel can hold stays a loop of forward, and the reason says what holds it up."""
    graph = trace(problem_of(CELL, "cell"))
    (loop,) = (node for node in graph.nodes if isinstance(node, Loop))
    with pytest.raises(LoweringError, match="inside of a loop is not generated"):
        plan_region(graph, (loop.name,))


DIAGONALS = """
import torch

ROWS, LENGTH = 4, 32
SMALL_SIZES = [{"LENGTH": 7}]


def along_diagonals(costs):
    rows, length, _ = costs.shape
    count = 2 * length - 1
    skewed = torch.nn.functional.pad(costs, (0, length)).reshape(rows, -1)[:, : length * count].view(rows, length, count)
    state = skewed[:, :, 0]
    for step in range(1, count):
        state = torch.minimum(state, state.roll(1, 1)) + skewed[:, :, step]
    return state


def example_inputs():
    return (torch.rand(ROWS, LENGTH, LENGTH),)
"""


def test_a_product_of_a_loops_length_with_what_grows_by_it_is_carried_on() -> None:
    """A table that is as long as there are steps, in each of as many rows, is known at full length from three short ones."""
    graph = trace(problem_of(DIAGONALS, "along_diagonals"))
    assert not graph.blocked
    (loop,) = (node for node in graph.nodes if isinstance(node, Loop))
    assert loop.steps[0] == 62
    assert any(size[0] == 32 * 63 for node in graph.nodes for meta in node.outputs for size in meta.shape)


@pytest.mark.parametrize(("body", "seen"), [("x.unfold(1, 20, 1)", 51 * 20 / 70), ("x.expand(5, 33, 70)", 1.0), ("x[:, ::2]", 1.0)])
def test_it_is_known_how_often_windows_see_an_element(body: str, seen: float) -> None:
    """They overlap in memory; what is repeated or left out does not."""
    _, graph = traced_at_all_sizes(function(f"torch.exp({body})"))
    (read,) = graph.by_name["exp"].refs
    assert graph.meta(read).seen == pytest.approx(seen, rel=0.02)


SCAN = """
import torch

ROWS, WIDTH, STATE, STEPS = 2, 6, 8, 24
SMALL_SIZES = [{"STEPS": 7}]


def scan(x, gates, reading):
    state, found = torch.zeros_like(x[:, 0]), []
    for step in range(STEPS):
        state = gates[:, step] * state + x[:, step]
        found.append(torch.matmul(state, reading[:, step, :, None])[:, :, 0])
    return torch.stack(found, 1)


def example_inputs():
    wide = (ROWS, STEPS, WIDTH, STATE)
    return torch.randn(wide), torch.rand(wide), torch.randn(ROWS, STEPS, STATE)
"""


def test_the_only_column_of_a_steps_product_is_held_in_its_kernel() -> None:
    """State-space mixers read their state by a product with one column, and take that out by its place."""
    graph = canonicalize(trace(problem_of(SCAN, "scan"))).graph
    (loop,) = (node for node in graph.nodes if isinstance(node, Loop))
    assert plan_region(graph, (loop.name,)).kernel.recurrence is not None


def test_a_part_without_elements_is_traced() -> None:
    """Nothing of it is seen twice."""
    _, graph = traced_at_all_sizes(function("torch.cat((torch.exp(x), x[:, :0]), 1)"))
    assert {meta.seen for node in graph.nodes for meta in node.outputs} == {1.0}


UNDER_NO_GRAD = {
    "whole": "    @torch.no_grad()\n    def forward(self, x):\n        return torch.tanh(x * self.scale)\n",
    "part": (
        "    def forward(self, x):\n        with torch.no_grad():\n            kept = x * self.scale\n        return torch.tanh(kept) + x\n"
    ),
}


@pytest.mark.parametrize("way", UNDER_NO_GRAD)
def test_what_runs_without_gradients_is_traced(way: str) -> None:
    """`torch.no_grad` around forward, or around a part of it, changes nothing that is computed."""
    head = "import torch\nROWS = 64\n\nclass Model(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    scale = "        self.scale = torch.nn.Parameter(torch.randn(32))\n\n"
    tail = "\ndef get_inputs():\n    return [torch.randn(ROWS, 32)]\n\ndef get_init_inputs():\n    return []\n"
    graph = trace(problem_of(head + scale + UNDER_NO_GRAD[way] + tail))
    assert not graph.blocked
    assert [node.op for node in graph.nodes][:2] == ["mul", "tanh"]


def test_sizes_at_which_other_operators_run_are_named() -> None:
    """A reference that branches by its sizes says at which of its small sizes it goes another way."""
    text = """import torch
ROWS, COLS = 64, 256
SMALL_SIZES = [{"ROWS": 6, "COLS": 9}, {"ROWS": 9, "COLS": 6}]

def f(x):
    x = x.mT if x.shape[0] > x.shape[1] else x
    return x @ x.mT

def example_inputs():
    return (torch.randn(ROWS, COLS),)
"""
    assert trace(problem_of(text)).blocked == ("the reference runs other operators at other sizes: at ROWS=9, COLS=6",)
