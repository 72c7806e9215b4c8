"""A pool of the interpreter and a small problem for the tests of the evaluator."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from tools.evaluation import EvaluationRequest, LocalPool
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.evaluation.wire.defences import NONE, Defences
from tools.hardware import load_sheet
from tools.problems import load_problem, small_variants
from tools.records import Evaluation, Problem

DOUBLE = """
import torch

rows = 4
columns = 1024
SMALL_SIZES = [{"rows": 3, "columns": 65}]


def double(x):
    return x * 2


def example_inputs():
    return (torch.randn(rows, columns),)
"""

KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        double_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
"""


@pytest.fixture(scope="session")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """Twice a matrix."""
    file = tmp_path_factory.mktemp("problem") / "double.py"
    file.write_text(DOUBLE)
    return load_problem(file)


@pytest.fixture(scope="session")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPool]:
    """A pool without a GPU."""
    made = LocalPool(tmp_path_factory.mktemp("pool"), None, parallel=2)
    yield made
    asyncio.run(made.close())


@pytest.fixture(scope="session")
def workers(pool: LocalPool) -> WorkerPool:
    """The pool's workers, already at work."""
    pool._workers.start()
    return pool._workers


@pytest.fixture(scope="session")
def request_for(problem: Problem) -> Callable[..., EvaluationRequest]:
    """Make a request for a source."""

    def make(source: str, timeout_s: float = 30.0, of: Problem = problem, target: str = "h200") -> EvaluationRequest:
        return EvaluationRequest(
            problem=of, variants=small_variants(of), candidate="c", source=source, target=load_sheet(target), timeout_s=timeout_s
        )

    return make


@pytest.fixture
def judge(pool: LocalPool, request_for: Callable[..., EvaluationRequest]) -> Callable[..., Evaluation]:
    """Evaluate a source."""

    def evaluate(source: str, off: Defences = NONE, **given: object) -> Evaluation:
        return asyncio.run(pool.weakened(off).evaluate(request_for(source, **given)))

    return evaluate


@pytest.fixture(scope="session")
def kernel() -> str:
    """A correct candidate for the problem."""
    return KERNEL
