"""Vectors that are added to linear layers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.harness import generated, run_worker, traced_text, write_job
from tests.tools.codegen.samples import function
from tools.codegen import emit

SHAPES = "torch.randn(9, 37), torch.randn(11, 37), torch.randn(11)"
LINEAR = "torch.nn.functional.linear(x, w)"


@pytest.mark.parametrize("body", [f"{LINEAR} + torch.tanh(b)", f"torch.cat([b[:4], b[4:]]) + {LINEAR}"])
def test_a_vector_added_to_a_layer_is_its_bias(body: str, tmp_path: Path) -> None:
    """There is no addition any more, and the result is right."""
    problem, graph = traced_text(function(body, SHAPES, "x, w, b"), "biased")
    assert "add" not in {node.op for node in graph.nodes}
    job = write_job(tmp_path, "biased", problem, emit(problem, graph, generated(graph, {})).source)
    (found,) = run_worker("interpreter_worker.py", [job], interpret=True)
    assert found.get("error", 99.0) <= 1.0, found


@pytest.mark.parametrize(
    "body",
    [
        "torch.nn.functional.linear(x, w, b) + b",
        f"torch.add({LINEAR}, b, alpha=2)",
        f"{LINEAR} + b.sum()",
        "(lambda y: (y + b) * y)(" + LINEAR + ")",
    ],
)
def test_other_additions_stay(body: str) -> None:
    """A second bias, a multiple of one, a number, and what is added to a result that others read, too."""
    graph = traced_text(function(body, SHAPES, "x, w, b"), "unbiased")[1]
    assert "add" in {node.op for node in graph.nodes}
