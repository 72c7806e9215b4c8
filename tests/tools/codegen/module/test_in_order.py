"""Operands of the library's einsum that a kernel puts in order, where PyTorch would copy them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.harness import run_worker, traced_text, write_job
from tests.tools.codegen.samples import function
from tools.codegen import emit, initial_schedule

CASES = {
    "parts": ("torch.einsum('bikc,bjkc->bijc', *x.chunk(2, dim=-1))", "torch.randn(2, 5, 7, 6)"),
    "heads": ("torch.einsum('bhd,blhd->bhl', x[:, 0], x)", "torch.randn(2, 5, 3, 8)"),
    "turned": ("torch.einsum('ikc,jkc->ijc', x[0].transpose(0, 1), x[1].transpose(0, 1))", "torch.randn(2, 70, 3, 5)"),
    "five dimensions": ("torch.einsum('zxyw,xar->zaryw', x, x[0])", "torch.randn(5, 5, 6, 7)"),
    "an einsum's result": (
        "torch.einsum('zaryw,rybs->zabsw', torch.einsum('zxyw,xar->zaryw', x, x[0]), x)",
        "torch.randn(6, 6, 6, 6)",
    ),
    "letters": ("torch.einsum('abcd,adcb->ac', x, x)", "torch.randn(3, 4, 5, 4)"),
}


@pytest.mark.slow
def test_an_einsum_of_operands_in_order_is_the_same(tmp_path: Path) -> None:
    """At the sizes as written, on Triton's interpreter."""
    jobs = []
    for name, (text, inputs) in CASES.items():
        problem, graph = traced_text(function(text, inputs, "x"))
        source = emit(problem, graph, initial_schedule(graph)).source
        assert "in_order(" in source, name
        jobs.append(write_job(tmp_path, name, problem, source))
    for result in run_worker("interpreter_worker.py", jobs, interpret=True):
        assert result.get("error", 9.0) <= 1.0, result


def test_an_einsum_that_copies_nothing_is_written_as_it_is() -> None:
    """Its operands are given as they lie."""
    problem, graph = traced_text(function("torch.einsum('bik,bjk->bij', x, x)", "torch.randn(2, 5, 7)", "x"))
    assert "in_order" not in emit(problem, graph, initial_schedule(graph)).source
