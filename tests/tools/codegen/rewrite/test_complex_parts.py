"""Complex arithmetic is done on real and imaginary parts, and Fourier transforms stay the library's between them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.harness import generated, run_worker, small, traced_at_all_sizes, unseen, write_job
from tools.codegen import emit

HEAD = "import torch\n\nROWS = 9\nCOLS = 24\n\n\ndef sample({arguments}):\n    return {body}\n\n\n"
TAIL = "def example_inputs():\n    return ({inputs},)\n"
PAIRS = "torch.view_as_complex(x.reshape(x.shape[0], -1, 2))"
COMPLEX: dict[str, tuple[str, str, str]] = {
    "turned": (
        f"torch.view_as_real({PAIRS} * torch.polar(torch.ones_like(a), a)[None] + {PAIRS}.conj() / 2.0).flatten(1).type_as(x)",
        "torch.randn(ROWS, 24), torch.rand(12)",
        "x, a",
    ),
    "magnitudes": (f"({PAIRS} - {PAIRS}.real).abs() + (-{PAIRS}).imag * 2.0", "torch.randn(ROWS, 24)", "x"),
    "zeros_turned": (
        f"(lambda z: torch.angle(z.conj() * z.roll(1, -1)))({PAIRS} * torch.relu(a)[None])",
        "torch.randn(ROWS, 24), torch.randn(12)",
        "x, a",
    ),
    "grown": (
        f"(torch.exp({PAIRS} * torch.complex(-a, a)).sum(-1) * torch.exp(torch.complex(x, x * 0.0)).mean(1)).conj().imag",
        "torch.randn(ROWS, 24), torch.rand(12)",
        "x, a",
    ),
    "divided": (
        f"torch.view_as_real({PAIRS} * torch.arange(12) / torch.complex(a, -a * 3.0) - x[:, :12] / ({PAIRS} + 3.0)).flatten(1)",
        "torch.randn(ROWS, 24), torch.rand(12) + 0.1",
        "x, a",
    ),
    "summed": (
        f"torch.einsum('hn,hnl->hl', {PAIRS}, torch.exp({PAIRS}[..., None] * torch.arange(7) * 0.1)).real",
        "torch.randn(ROWS, 24)",
        "x",
    ),
    "multiplied": (
        f"torch.view_as_real(({PAIRS} @ torch.view_as_complex(w).t()).abs() * ({PAIRS}.conj() @ torch.view_as_complex(w).conj().t()))",
        "torch.randn(36, 24), torch.randn(7, 12, 2)",
        "x, w",
    ),
    "broadcast": (
        "torch.view_as_real(torch.polar(x, a) * torch.complex(a, x)).flatten(1)",
        "torch.rand(ROWS, 24), torch.randn(24)",
        "x, a",
    ),
    "filtered": (
        "torch.fft.irfft(torch.fft.rfft(x, dim=-1) * torch.complex(a, b), n=x.shape[-1], dim=-1) * 2.0",
        "torch.randn(ROWS, COLS), torch.randn(COLS // 2 + 1), torch.randn(COLS // 2 + 1)",
        "x, a, b",
    ),
}
XY, INFINITE = "torch.randn(ROWS, COLS), torch.randn(ROWS, COLS)", "torch.where(x > 0.5, float('inf'), x)"
NUMBERS: dict[str, tuple[str, str, str]] = {
    "waves": ("torch.view_as_real(torch.exp(1j * x) + torch.exp(y * -2j))", XY, "x, y"),
    "waves_of_infinities": (f"torch.view_as_real(torch.exp(1j * {INFINITE}) + {INFINITE} * 1j)", "torch.randn(ROWS, COLS)", "x"),
    "scaled": ("torch.view_as_real((0.5 - 2j) * torch.complex(x, y) * 1j - (1 + 3j))", XY, "x, y"),
    "taken_from": ("torch.view_as_real((0.5 - 2j) - torch.complex(x, y) - (2.0 - torch.polar(x, y)))", XY, "x, y"),
    "divided_by": ("torch.view_as_real(torch.complex(x, y) / (0.5 - 2j) + x / (1 + 2j) + 1j / (x.abs() + 1))", XY, "x, y"),
    "put_together": ("(x + 1j * y).abs() + (x - y * 1j).angle()", XY, "x, y"),
    "signs_of_zeros": ("torch.angle(torch.relu(x) * (0.0 - 1j)) + torch.angle(1j - torch.relu(y))", XY, "x, y"),
    "wide_and_narrow": ("torch.view_as_real((x[:, :1] - torch.polar(x, y)) * (torch.polar(x, y)[:1] + y + 1j))", XY, "x, y"),
    "whole_numbers": (
        "torch.view_as_real(torch.exp(1j * torch.arange(x.shape[1], device=x.device)) * x - 1j * x.long())",
        "torch.randn(ROWS, COLS)",
        "x",
    ),
    "squared": ("torch.view_as_real((x.to(torch.complex64) + 1j * y) ** 2 + torch.polar(x, y).square())", XY, "x, y"),
}
"""Expressions with complex numbers of Python's, and with real tensors beside complex ones."""
EVERY = COMPLEX | NUMBERS


def source(name: str) -> str:
    """The text of a sample."""
    body, inputs, arguments = EVERY[name]
    return HEAD.format(body=body, arguments=arguments) + TAIL.format(inputs=inputs)


@pytest.mark.slow
def test_parts_match_float64(tmp_path: Path) -> None:
    """Products, sums, conjugates, magnitudes and a filter between two transforms give what torch gives."""
    jobs = []
    for name in EVERY:
        problem, graph = traced_at_all_sizes(source(name))
        jobs.append(write_job(tmp_path, name, unseen(small(source(name))), emit(problem, graph, generated(graph, {})).source))
    for name, result in zip(EVERY, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True):
        assert result.get("error", 9.0) <= 1.0, (name, result)


def test_nothing_complex_is_left_of_a_rotation() -> None:
    """A rotation by complex numbers holds real operators alone; between transforms a complex view of the parts is left."""
    kinds = {name: {out.dtype for node in traced_at_all_sizes(source(name))[1].nodes for out in node.outputs} for name in COMPLEX}
    for name in ("turned", "magnitudes", "zeros_turned", "grown", "divided", "summed"):
        assert "complex64" not in kinds[name]
    assert "complex64" in kinds["filtered"]


@pytest.mark.parametrize("name", NUMBERS)
def test_nothing_complex_is_left_of_numbers(name: str) -> None:
    """A number of Python's beside a tensor is two real ones, on either side of an operator, and a real tensor has one part."""
    graph = traced_at_all_sizes(source(name))[1]
    assert not [node.name for node in graph.nodes for out in node.outputs if out.dtype == "complex64"]
    assert not any(isinstance(arg, complex) for node in graph.nodes for arg in node.args)


def test_a_product_of_complex_matrices_is_one_of_real_ones() -> None:
    """Pairs of parts are multiplied where they lie, by a matrix with four numbers for each; of few rows the product stays complex."""
    text = source("multiplied")
    products = [node for node in traced_at_all_sizes(text)[1].nodes if node.op == "matmul"]
    assert [(node.outputs[0].dtype, node.outputs[0].written) for node in products] == [("float32", (36, 14))] * 2
    few = traced_at_all_sizes(text.replace("randn(36, 24)", "randn(6, 24)"))[1]
    assert {node.outputs[0].dtype for node in few.nodes if node.op == "matmul"} == {"complex64"}


def test_the_complex_view_of_pairs_is_no_copy() -> None:
    """What is multiplied reads the tensor that the complex value is a view of."""
    graph = traced_at_all_sizes(source("multiplied"))[1]
    product = next(node for node in graph.nodes if node.op == "matmul")
    flat = graph.by_name[product.args[0].name]
    assert (flat.op, graph.by_name[flat.args[0].name].op) == ("flatten", "reshape")
