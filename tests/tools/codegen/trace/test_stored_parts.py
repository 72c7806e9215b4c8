"""Parts of a tensor that are stored at every turn of a loop are what the loop carries."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.harness import run_worker, traced_text, write_job
from tools.codegen import OperatorGraph, emit, initial_schedule
from tools.codegen.ir.loop import Loop
from tools.codegen.trace.exports import export_problem
from tools.codegen.trace.fold_loops import with_loops

FILTER = """
import torch

ROWS, STEPS = 5, 12
SMALL_SIZES = [{{"ROWS": 3}}, {{"ROWS": 9}}]


def filtered(x, state):
    state = state.clone()
    out = torch.empty_like(x)
    for n in range(STEPS):
        {step}
    return out, state


def example_inputs():
    return torch.randn(ROWS, STEPS), torch.randn(ROWS, 2, 2)
"""
SECTIONS = """y = x[:, n]
        for s in range(2):
            v = y
            y = 0.5 * v + state[:, s, 0]
            state[:, s, 0] = 0.3 * v - 0.4 * y + state[:, s, -1]
            state[:, s, 1] = 0.2 * v - 0.1 * y
        out[:, n] = y"""
WHOLE = """state[:, 0] = state[:, 1] * 0.5 + x[:, n, None]
        state[:, 1] = state.mean(1)
        out[:, n] = state.sum((1, 2))"""
ONE_KEPT = """state[:, 0] = torch.tanh(state[:, 0] + state[:, 1] * x[:, n, None])
        out[:, n] = state[:, 0, 0]"""
TURNED = """state[n % 2] = torch.tanh(state[(n + 1) % 2] + x[n % 2, n])
        out[:, n] = x[:, n]"""


def traced(step: str) -> tuple[object, OperatorGraph]:
    """Trace a filter by what a step does."""
    return traced_text(FILTER.format(step=step), "filtered")


@pytest.mark.parametrize("step", [SECTIONS, WHOLE, ONE_KEPT, TURNED], ids=["sections", "whole", "one kept", "turned"])
def test_stored_parts_are_right(step: str, tmp_path: Path) -> None:
    """Whether a step reads parts, all of the state, or a part that no step stores: results and the state that is left are right."""
    problem, graph = traced(step)
    source = emit(problem, graph, initial_schedule(graph)).source  # type: ignore[arg-type]
    (result,) = run_worker("interpreter_worker.py", [write_job(tmp_path, "filtered", problem, source)], interpret=True)  # type: ignore[arg-type]
    assert "crash" not in result, result["crash"]
    assert result["error"] <= 1.0


def loop_of(step: str) -> Loop:
    """Fold a filter's trace at the sizes as written into its loop."""
    (loop,) = (node for node in with_loops(export_problem(traced(step)[0])).nodes if isinstance(node, Loop))  # type: ignore[arg-type]
    return loop


@pytest.mark.parametrize(("step", "parts"), [(SECTIONS, 4), (ONE_KEPT, 1)], ids=["sections", "one kept"])
def test_a_filter_of_stored_parts_is_one_loop(step: str, parts: int) -> None:
    """Each part that is stored is carried by itself, and none is taken out of the state, or put into it, within the loop."""
    loop = loop_of(step)
    assert len(loop.carried) == parts
    assert not [node.op for node in loop.body.nodes if node.op == "select_scatter"]


def test_what_is_stored_once_stays_as_it_is() -> None:
    """Results that are written turn by turn are left to the loop that writes them."""
    loop = loop_of("state[:, 1] = torch.tanh(x[:, n, None] + state[:, 1])\n        out[:, n] = state[:, 1, 0]")
    assert [left.dim for left in loop.left].count(None) == len(loop.left) - 1
