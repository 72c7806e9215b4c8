"""Arguments, parameters and results of complex64 are given and judged as they are, and generated kernels read and write their parts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import torch

from tests.tools.codegen.harness import generated, problem_of, traced_text
from tests.tools.guards.cases import loaded
from tools.codegen import emit
from tools.complex_pairs import in_parts
from tools.evaluation import EvaluationRequest, LocalPool
from tools.evaluation.trusted.reference import Oracle
from tools.guards import contract_of, guarded
from tools.records import Verdict

ROTARY = """
import torch

BATCH, LENGTH, HEADS, DIM = 1, 8, 2, 16
SMALL_SIZES = [{"LENGTH": 5}]


def rotary(x, freqs):
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * freqs[None, :, None]).flatten(3).type_as(x)


def example_inputs():
    freqs = torch.randn(LENGTH, DIM // 2, dtype=torch.complex64)
    return [torch.randn(BATCH, LENGTH, HEADS, DIM, dtype=torch.bfloat16), freqs]
"""
FILTER = """
import torch
from torch import nn

ROWS, COLS = 4, 24
SMALL_SIZES = [{"ROWS": 3}]


class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.w = nn.Parameter(torch.randn(cols, dtype=torch.complex64))

    def forward(self, x):
        return torch.fft.ifft(torch.fft.fft(x) * self.w) + x.conj()


def get_inputs():
    return [torch.randn(ROWS, COLS, dtype=torch.complex64)]


def get_init_inputs():
    return [COLS]
"""
WRONG = """
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.w = nn.Parameter(torch.randn(cols, dtype=torch.complex64))

    def forward(self, x):
        y = torch.fft.ifft(torch.fft.fft(x) * self.w) + x.conj()
        return torch.complex(y.real, y.imag * 1.001)
"""


@pytest.mark.parametrize("source", [ROTARY, FILTER], ids=["rotary", "filter"])
def test_a_generated_kernel_is_right(pool: LocalPool, request_for: Callable[..., EvaluationRequest], source: str) -> None:
    """Complex arguments, parameters and results are read and written by parts; what comes is within the limits."""
    problem, graph = traced_text(source)
    text = emit(problem, graph, generated(graph, {})).source
    found = asyncio.run(pool.evaluate(request_for(text, of=problem)))
    assert "@triton.jit" in text
    assert found.verdict is Verdict.PASS, (found.notes, found.log)


def test_a_wrong_imaginary_part_is_found(pool: LocalPool, request_for: Callable[..., EvaluationRequest]) -> None:
    """A thousandth in the imaginary part alone is wrong, and is shown where it is: part 1 of the last dimension."""
    found = asyncio.run(pool.evaluate(request_for(WRONG, of=problem_of(FILTER))))
    assert found.verdict is Verdict.WRONG
    assert found.correctness is not None
    assert {wrong.box[-1] for wrong in found.correctness.wrong} == {(1, 1)}


def test_conjugate_views_are_resolved_before_a_kernel_reads_them() -> None:
    """A delivered file gets what a conjugate or transposed view stands for, and refuses another dtype."""
    source = (
        "import torch\nfrom torch import nn\n\n\nclass ModelNew(nn.Module):\n    def forward(self, x, freqs):\n"
        "        return torch.view_as_real(freqs)\n"
    )
    module = loaded(guarded(source, contract_of(problem_of(ROTARY), []))).ModelNew()
    x, freqs = torch.randn(1, 8, 2, 16, dtype=torch.bfloat16), torch.randn(8, 8, dtype=torch.complex64)
    for given in (freqs.conj(), freqs.mT, freqs.mH):
        assert torch.equal(module(x, given), torch.view_as_real(given.resolve_conj()))
    with pytest.raises(ValueError, match=r"freqs is torch\.complex128, not torch\.complex64"):
        module(x, freqs.to(torch.complex128))


def test_the_oracle_keeps_imaginary_parts() -> None:
    """Parameters and arguments are widened to complex128, and results come as float64 rows of both parts."""
    problem = problem_of(FILTER)
    x, w = torch.randn(4, 24, dtype=torch.complex64), torch.randn(24, dtype=torch.complex64)
    (found,) = Oracle(problem, {"w": w}, "cpu").outputs([x])
    exact = torch.fft.ifft(torch.fft.fft(x.to(torch.complex128)) * w) + x.conj()
    assert found.shape == (4, 48)
    assert torch.allclose(found, in_parts(exact), rtol=1e-12, atol=1e-12)
