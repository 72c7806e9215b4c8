"""Einsum of several tensors is generated step by step, and traces that say the same in other words are one graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.harness import assert_right_at_unseen_sizes, problem_of, traced_text
from tests.tools.codegen.samples import function
from tools.codegen import limits
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
MOMENTS = {
    "moments": function("torch.einsum('bi,bij,bik->bjk', y, x, x)", "torch.randn(ROWS, 4100, 3), torch.randn(ROWS, 4100)", "x, y"),
    "moments_of_matrices": function("torch.bmm(x.transpose(1, 2) * 2, x)", "torch.randn(ROWS, 4100, 3)", "x"),
}
"""Long sums, of which few are made."""
BATCHES = "torch.randn(2, 3, ROWS, 20), torch.randn(3, 20, COLS)"
SPELLINGS = {
    "ellipsis": function("torch.einsum('...ij,...jk->...ik', x, y)", BATCHES, "x, y"),
    "ellipsis_of_one": function("torch.einsum('...ij,...jk->...ik', x, y[:1])", BATCHES, "x, y"),
    "ellipsis_of_chunks": function("torch.einsum('...qd,...kd', *x.chunk(2, -1))", "torch.randn(2, ROWS, 40)", "x"),
    "ellipsis_of_three": function("torch.einsum('...qd,...kd,...kv->...qv', x, x * 2, x[..., :9])", "torch.randn(2, ROWS, 20)", "x"),
    "no_arrow": function("torch.einsum('ba,cB', x, y) + 1", "torch.randn(ROWS, 1), torch.randn(1, COLS)", "x, y"),
    "no_arrow_turned": function("torch.einsum('ba,cb', x, y)", "torch.randn(20, ROWS), torch.randn(COLS, 20)", "x, y"),
    "everything": function("torch.einsum('ij,ij', x, y) + torch.einsum('ij->', x)", "torch.randn(ROWS, 9), torch.randn(ROWS, 9)", "x, y"),
    "diagonal": function("torch.einsum('bii,ij->bj', x, y)", "torch.randn(3, ROWS, ROWS), torch.randn(ROWS, COLS)", "x, y"),
    "diagonals": function("torch.einsum('ijijj->ji', x) * 2", "torch.randn(ROWS, 5, ROWS, 5, 5)", "x"),
    "turned": function("torch.einsum('...ij->...ji', x) * 2", "torch.randn(2, ROWS, COLS)", "x"),
    "batch_of_one": function("torch.einsum('bij,bjk->bik', x, y)", "torch.randn(1, ROWS, 20), torch.randn(3, 20, COLS)", "x, y"),
    "complex_diagonal": function(
        "torch.view_as_real(torch.einsum('...ii->...', torch.complex(x, x * 2)))", "torch.randn(3, ROWS, ROWS)", "x"
    ),
}
"""Ways of writing an equation."""
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


@pytest.mark.parametrize("name", MOMENTS)
def test_a_few_long_sums_are_no_matrix_product(name: str) -> None:
    """The library has one multiprocessor make each product of a batch, however long its sums are; sums are split."""
    _, graph = traced_text(MOMENTS[name])
    assert not limits(graph)
    assert {node.op for node in graph.nodes} & {"sum", "small_product"}
    assert not {node.op for node in graph.nodes} & {"einsum", "bmm"}


@pytest.mark.parametrize("name", SPELLINGS)
def test_einsum_is_generated_however_it_is_spelled(name: str) -> None:
    """`...`, no arrow, letters twice in a tensor and dimensions of one element leave nothing to the library."""
    _, graph = traced_text(SPELLINGS[name])
    assert not limits(graph)
    assert all("..." not in str(node.args[0]) for node in graph.nodes if node.op == "einsum")


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


@pytest.mark.parametrize(("name", "equation"), [("state", "bhls,bshp->blhp"), ("decayed", "bhln,blhp->bhpn")])
def test_what_a_product_reads_has_its_matrices_one_after_the_other(name: str, equation: str) -> None:
    """What a step makes lies with the batch of the next product first: elements of one matrix are neighbours."""
    _, graph = traced_text(EINSUMS[name])
    assert equation in [node.args[0] for node in graph.nodes if node.op == "einsum"]


@pytest.mark.slow
def test_einsum_by_steps_gives_the_references_results(tmp_path: Path) -> None:
    """At sizes that no trace saw, in the interpreter."""
    assert_right_at_unseen_sizes(tmp_path, EINSUMS | SPELLINGS | MOMENTS)
