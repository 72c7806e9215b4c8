"""A softmax is one however it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.harness import run_worker, traced_text, write_job
from tests.tools.codegen.samples import function
from tools.codegen import emit, initial_schedule
from tools.codegen.rewrite.canonicalize import canonicalize
from tools.codegen.schedule.plan import plan_region

SAME = {
    "shifted": "torch.softmax(x - x.max(-1, keepdim=True).values, -1)",
    "shifted, of logarithms": "F.log_softmax(x - x.amax(1, True), dim=-1)",
    "along rows": "torch.softmax(x - x.amax(0, True), 0)",
    "by hand": "(lambda e: e / e.sum(-1, keepdim=True))(torch.exp(x - x.max(dim=1, keepdim=True)[0]))",
}
OTHER = {
    "another dimension's maximum": "torch.softmax(x - x.amax(0, True), 1)",
    "another tensor's maximum": "torch.softmax(x - (x * 2).amax(1, True), 1)",
    "a mean": "torch.softmax(x - x.mean(1, True), 1)",
    "a multiple of the maximum": "torch.softmax(torch.sub(x, x.amax(1, True), alpha=2), 1)",
    "without a maximum": "(lambda e: e / e.sum(-1, keepdim=True))(torch.exp(x))",
    "another dimension's sum": "(lambda e: e / e.sum(0, keepdim=True))(torch.exp(x - x.amax(1, True)))",
    "a rounded quotient": "(lambda e: torch.div(e, e.sum(1, keepdim=True), rounding_mode='floor'))(torch.exp(x - x.amax(1, True)))",
}

VIEWS = {"transpose", "expand", "slice"}


def _operators(text: str) -> list[str]:
    return [node.op for node in canonicalize(traced_text(function(text))[1]).graph.nodes]


@pytest.mark.parametrize("name", SAME)
def test_a_maximum_is_taken_away_but_once(name: str) -> None:
    """What is left is the softmax, or its logarithm, of the tensor itself."""
    assert _operators(SAME[name]) in (["softmax"], ["log_softmax"])


@pytest.mark.parametrize("name", OTHER)
def test_what_is_no_softmax_stays(name: str) -> None:
    """Another shift may lose digits, or overflow where the reference does; other sums and quotients are others."""
    assert len(_operators(OTHER[name])) > 1


@pytest.mark.parametrize("name", SAME)
def test_rows_without_a_finite_element_are_what_the_reference_gives(name: str, tmp_path: Path) -> None:
    """Infinite elements, and rows of nothing but minus infinity, are NaN in the same places."""
    inputs = "torch.randn(ROWS, COLS).log().nan_to_num(-float('inf')) * torch.tensor([[1.0]] + [[-2.0]] * (ROWS - 1))"
    problem, graph = traced_text(function(SAME[name], inputs), "infinite")
    source = emit(problem, graph, initial_schedule(graph)).source
    (found,) = run_worker("interpreter_worker.py", [write_job(tmp_path, "job", problem, source)], interpret=True)
    assert found["error"] <= 1.0, found


def test_attention_with_a_sink_and_its_maximum_taken_away_is_one_region() -> None:
    """Models with a learnt logit a head take the maximum away before their softmax."""
    text = """
import torch

HEADS, STEPS, DIM = 3, 12, 16


def attention(q, k, v, sinks):
    scores = torch.cat([q @ k.transpose(1, 2) * DIM**-0.5, sinks.expand(HEADS, STEPS, 1)], dim=-1)
    scores = scores - scores.max(dim=-1, keepdim=True).values
    return torch.softmax(scores, dim=-1)[..., :-1] @ v


def example_inputs():
    q, k, v = (torch.randn(HEADS, STEPS, DIM) for _ in range(3))
    return q, k, v, torch.randn(HEADS, 1, 1)
"""
    graph = canonicalize(traced_text(text, "sink")[1]).graph
    planned = plan_region(graph, tuple(node.name for node in graph.nodes if node.op not in VIEWS))
    assert planned.kernel.attention is not None
    assert planned.kernel.attention.sink is not None
