"""Regions in which two operators would each shape the whole kernel are refused, and not written wrong."""

from __future__ import annotations

import pytest

from tests.tools.codegen.harness import traced_at_all_sizes, traced_text
from tools.codegen import LoweringError
from tools.codegen.ir.loop import Loop
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.plan import plan_region

GROWN = """
import torch
import torch.nn.functional as F

ROWS, HEIGHT, WIDTH, STEPS = 4, 64, 96, 20

def f(x, allowed):
    for _ in range(STEPS):
        x = F.max_pool2d(x, 3, 1, 1) * allowed
    return x

def example_inputs():
    return torch.rand(ROWS, 1, HEIGHT, WIDTH), torch.rand(ROWS, 1, HEIGHT, WIDTH)
"""

POWERS = """
import torch

ROWS, COLS, WIDE, DIM = 64, 96, 80, 48

def f(x, a, b, c):
    one, two = x @ a, x @ b
    return (one * one + two * two) @ c

def example_inputs():
    return torch.randn(ROWS, COLS), torch.randn(COLS, WIDE), torch.randn(COLS, WIDE), torch.randn(WIDE, DIM)
"""


def test_steps_that_look_at_neighbours_are_kernels_of_their_own() -> None:
    """A pooling of what a loop carries needs what other programs made in the step before: the steps are written out."""
    _, graph = traced_at_all_sizes(GROWN)
    assert [node.op for node in graph.nodes].count("max_pool2d") == 20
    assert not any(isinstance(node, Loop) for node in graph.nodes)


def test_scores_of_two_products_are_one_attention() -> None:
    """An attention walks several products of queries and keys at once: what is made of both is multiplied by the values."""
    _, graph = traced_text(POWERS)
    planned = plan_region(graph, tuple(node.name for node in graph.nodes if not is_view(node)))
    assert planned.template.name == "attention"
    assert len(planned.kernel.contractions) == 2


def test_a_product_beside_the_scores_is_no_part_of_an_attention() -> None:
    """A product whose result does not go into the weights is a kernel of its own."""
    _, graph = traced_text(POWERS.replace("(one * one + two * two) @ c", "(one * one) @ c, two"))
    with pytest.raises(LoweringError, match="than the keys"):
        plan_region(graph, tuple(node.name for node in graph.nodes if not is_view(node)))
