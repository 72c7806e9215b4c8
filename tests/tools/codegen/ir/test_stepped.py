"""Quotients that are rounded to whole numbers are divided as PyTorch divides; others as fast as the device can."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tools.codegen.harness import assert_right_at_unseen_sizes, generated, run_worker, traced_text, write_job
from tests.tools.codegen.samples import function
from tools.codegen import emit

TWO = "torch.randn(ROWS, COLS), torch.rand(ROWS, COLS) + 0.5"
STEPPED = {
    "rounded": "torch.round(x / y)",
    "codes": "(x / y).clamp(-127, 127).to(torch.int8)",
    "a bucket": "torch.floor((x / y + 1) * 8)",
    "by a row's maximum": "torch.round(x / (x.abs().amax(-1, keepdim=True) / y.amax(-1, keepdim=True))).to(torch.int8)",
}
SMOOTH = {
    "a quotient": "x / y",
    "beside a step": "torch.round(x) / y",
    "a sum of it": "torch.round((x / y).sum(-1))",
    "compared with one of its own": "(lambda q: torch.where(q < q.topk(3)[0][:, 2:], 0, q))(x / y)",
}


def text(body: str) -> str:
    """Write a sample's kernels."""
    problem, graph = traced_text(function(body, TWO, "x, y"))
    return emit(problem, graph, generated(graph, {})).source


@pytest.mark.parametrize("name", STEPPED)
def test_a_quotient_before_a_step_is_rounded_correctly(name: str) -> None:
    """The device's own is up to two units off: at an edge that is another whole number."""
    source = text(STEPPED[name])
    assert source.count("tl.div_rn(") == (2 if "maximum" in name else 1)
    assert not re.search(r"= .* / \w", source)


@pytest.mark.parametrize("name", SMOOTH)
def test_other_quotients_are_the_devices_own(name: str) -> None:
    """Two units are within what is allowed, and cost a fraction; so is what they come to in a sum."""
    assert "div_rn" not in text(SMOOTH[name])


def test_quotients_of_numbers_are_right(tmp_path: Path) -> None:
    """A number of Python's, or a size, is no tensor to divide by: it is made one."""
    source = function("torch.floor(8.0 / y) + torch.floor(x * 9 / (y.shape[1] + 1)) + torch.round(x / y)", TWO, "x, y")
    assert_right_at_unseen_sizes(tmp_path, {"numbers": source})
    problem, graph = traced_text(source)
    [compiled] = run_worker(
        "compile_worker.py",
        [{**write_job(tmp_path, "compiled", problem, emit(problem, graph, generated(graph, {})).source), "arch": 90}],
        interpret=False,
    )
    assert not compiled.get("crash"), compiled
