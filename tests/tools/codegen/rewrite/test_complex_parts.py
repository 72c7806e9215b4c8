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


def source(name: str) -> str:
    """The text of a sample."""
    body, inputs, arguments = COMPLEX[name]
    return HEAD.format(body=body, arguments=arguments) + TAIL.format(inputs=inputs)


@pytest.mark.slow
def test_parts_match_float64(tmp_path: Path) -> None:
    """Products, sums, conjugates, magnitudes and a filter between two transforms give what torch gives."""
    jobs = []
    for name in COMPLEX:
        problem, graph = traced_at_all_sizes(source(name))
        jobs.append(write_job(tmp_path, name, unseen(small(source(name))), emit(problem, graph, generated(graph, {})).source))
    for name, result in zip(COMPLEX, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True):
        assert result.get("error", 9.0) <= 1.0, (name, result)


def test_nothing_complex_is_left_of_a_rotation() -> None:
    """A rotation by complex numbers holds real operators alone; between transforms a complex view of the parts is left."""
    kinds = {name: {out.dtype for node in traced_at_all_sizes(source(name))[1].nodes for out in node.outputs} for name in COMPLEX}
    for name in ("turned", "magnitudes", "zeros_turned", "grown", "divided", "summed"):
        assert "complex64" not in kinds[name]
    assert "complex64" in kinds["filtered"]


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
