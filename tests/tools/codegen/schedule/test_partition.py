"""The partition of a graph into regions: what it takes to find it, and what it holds."""

from __future__ import annotations

import random

from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.samples import function
from tools.codegen.schedule.partition import natural_regions
from tools.codegen.schedule.plan import MOST_NODES

STEPS = 220
OPERATORS = ("sin", "cos", "exp", "tanh", "abs", "neg", "sigmoid", "erf", "floor", "relu", "sinh", "square")
CHAIN = "x" + "".join(f".{operator}()" for operator in random.Random(0).choices(OPERATORS, k=STEPS))
"""In no order, that it is no loop."""


def test_a_large_region_is_not_lowered_at_each_size() -> None:
    """Up to what one kernel holds operators join one region, and fewer sets of them were planned than it has."""
    _, graph = traced_text(function(CHAIN))
    nodes = [node.name for node in graph.nodes]
    assert len(nodes) == STEPS
    regions = natural_regions(graph).regions
    assert [len(region.nodes) for region in regions] == [MOST_NODES, STEPS - MOST_NODES]
    assert len(graph.__dict__["_plans"]) < 96


def test_what_does_not_fit_a_large_region_is_left_out_alone() -> None:
    """A product in the middle of a long chain is a region of its own; all else is one kernel before it and one after it."""
    before, after = CHAIN.split(".", 60)[:60], CHAIN.split(".")[60:100]
    body = f"({'.'.join(before)} @ y).{'.'.join(after)}"
    _, graph = traced_text(function(body, "torch.randn(6, 6), torch.randn(6, 6)", "x, y"))
    assert [len(region.nodes) for region in natural_regions(graph).regions] == [59, 1, 40]


def test_keys_at_positions_that_are_made_are_gathered_by_themselves() -> None:
    """A gather that only products of an attention multiply is no part of what makes its positions, which other gathers are."""
    inputs = "torch.randn(2, 3, 8), torch.randn(40, 8), torch.randint(0, 5, (2, 6)), torch.randn(40, 8)"
    for body, sizes in (
        ("torch.softmax(q @ k[5 * y + 1].transpose(1, 2), -1) @ v[5 * y + 1]", [1, 1, 1, 1, 1, 4]),
        ("k[5 * y + 1].sin() @ v.T", [1, 4]),
    ):
        _, graph = traced_text(function(body, inputs, "q, k, y, v"))
        assert sorted(len(region.nodes) for region in natural_regions(graph).regions) == sizes
