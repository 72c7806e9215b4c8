"""Kernels say so where a size that they work out is 0: Triton knows no blocks of nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.harness import generated, run_worker, traced_text, unseen, write_job
from tools.codegen import emit

SAID = "no kernel is made for a size of 0"
LINES = {
    "rows": "(x[:, 1:] - x[:, :-1]).sum(1)",
    "halves": "(x[:, ::2][:, : x.shape[1] // 2] * 2).sum(1)",
    "pointwise": "((x[:, 1:] - x[:, :-1]) * 2).sum(1) + (x[:, 1:] * 3).t().contiguous().sum(0)",
    "tiles": "torch.flip(x[:, 1:], [1]).cummax(1).values.sum(1)",
}


def _source(line: str) -> str:
    head = "import torch\n\nROWS, COLS = 64, 513\n"
    return f"{head}\n\ndef f(x):\n    return {line}\n\n\ndef example_inputs():\n    return (torch.randn(ROWS, COLS),)\n"


@pytest.mark.parametrize("name", LINES)
def test_a_difference_of_nothing_is_an_error_that_says_so(name: str, tmp_path: Path) -> None:
    """Of one column there are no differences, and half of it is none."""
    problem, graph = traced_text(_source(LINES[name]), name)
    source = emit(problem, graph, generated(graph, {})).source
    sizes = {513: unseen(_source(LINES[name]).replace("64, 513", "3, 9"), name), 1: unseen(_source(LINES[name]).replace("513", "1"), name)}
    jobs = [write_job(tmp_path, f"{name}{columns}", each, source) for columns, each in sizes.items()]
    right, nothing = run_worker("interpreter_worker.py", jobs, interpret=True)
    assert right["error"] <= 1
    assert SAID in nothing["crash"]


def test_sizes_of_inputs_are_not_asked_about() -> None:
    """A guard has refused what is empty."""
    problem, graph = traced_text(_source("torch.softmax(x * 2, 1)"), "softmax")
    assert SAID not in emit(problem, graph, generated(graph, {})).source
