"""Einsum of several tensors is generated step by step, and traces that say the same in other words are one graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.harness import generated, problem_of, run_worker, small, traced_text, unseen, write_job
from tests.tools.codegen.samples import function
from tools.codegen import emit, limits
from tools.codegen.trace.exports import export_problem
from tools.codegen.trace.tracing import merge

STATE = "torch.randn(2, ROWS, 3, 4), torch.randn(2, ROWS, 3, 4), torch.randn(2, 3, ROWS, ROWS), torch.randn(2, ROWS, 3, COLS)"
EINSUMS = {
    # a product over n, elements by decays, a product over s, as state-space models write it
    "state": function("torch.einsum('blhn,bshn,bhls,bshp->blhp', x, y, z, w)", STATE, "x, y, z, w"),
    "decayed": function("torch.einsum('blhn,bhl,blhp->bhpn', x, z[..., 0], w)", STATE, "x, y, z, w"),
    "late": function("torch.einsum('blhn,bshn,bhl->blhs', x, y, z[:, :, :, 1])", STATE, "x, y, z, w"),
    "elements": function("torch.einsum('ij,jk->kij', x, y) + 1", "torch.randn(ROWS, 5), torch.randn(5, COLS)", "x, y"),
}
SLICED = """import torch

STEPS = {}


def sample(x):
    return torch.exp(x[:, :1] + x)[:, -2:], x[:, :1] * 2


def example_inputs():
    return (torch.randn(3, STEPS),)
"""


@pytest.mark.parametrize("name", ["state", "decayed", "late"])
def test_einsum_of_several_tensors_is_generated(name: str) -> None:
    """Nothing of it is left to the library: its steps are products of two, and multiplications by element."""
    _, graph = traced_text(EINSUMS[name])
    assert not limits(graph)
    assert all(len(node.args[1]) == 2 for node in graph.nodes if node.op == "einsum")


def test_einsum_that_sums_a_letter_of_one_tensor_alone_stays_as_it_is() -> None:
    """That would be a sum before a product, and is the library's."""
    _, graph = traced_text(function("torch.einsum('ij,ik,il->l', x, x * 2, x + 1)"))
    assert [len(node.args[1]) for node in graph.nodes if node.op == "einsum"] == [3]


def test_a_slice_that_takes_everything_at_some_sizes_is_a_slice_at_all() -> None:
    """A sequence of one step is exported with an alias where others have a slice; the traces are one graph none the less."""
    exports = [export_problem(problem_of(SLICED.format(steps))) for steps in (4, 1)]
    assert {node.target for node in exports[1].nodes} != {node.target for node in exports[0].nodes}
    graph = merge(problem_of(SLICED.format(4)), exports)
    assert not graph.blocked
    assert {node.op for node in graph.nodes} == {"slice", "add", "exp", "mul"}


@pytest.mark.slow
def test_einsum_by_steps_gives_the_references_results(tmp_path: Path) -> None:
    """At sizes that no trace saw, in the interpreter."""
    jobs = []
    for name, source in EINSUMS.items():
        problem, graph = traced_text(source)
        jobs.append(write_job(tmp_path, name, unseen(small(source)), emit(problem, graph, generated(graph, {})).source))
    for name, result in zip(EINSUMS, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True):
        assert "crash" not in result, (name, result["crash"])
        assert result["error"] <= 1.0, name
