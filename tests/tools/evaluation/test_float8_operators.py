"""Operators with float8 tensors, judged without a GPU."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.evaluation import EvaluationRequest, LocalPool
from tools.problems import load_problem
from tools.records import Verdict

PROBLEM = """
import torch

rows = 16
columns = 1024
SMALL_SIZES = [{"rows": 3, "columns": 65}]


def requantise(x, scale):
    return (x.to(torch.float32) * scale).to(torch.float8_e4m3fn)


def example_inputs():
    return (torch.randn(rows, columns).to(torch.float8_e5m2), torch.rand(columns) + 0.5)
"""
KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def requantise_kernel(x_ptr, scale_ptr, out_ptr, n, columns, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + offsets, x * tl.load(scale_ptr + offsets % columns, mask=mask, other=0.0), mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, x, scale):
        out = torch.empty(x.shape, device=x.device, dtype=torch.float8_e4m3fn)
        requantise_kernel[(triton.cdiv(x.numel(), 1024),)](x, scale, out, x.numel(), x.shape[1], BLOCK=1024)
        return out
"""


@pytest.mark.parametrize(("change", "verdict"), [("x * tl.load", Verdict.PASS), ("0.97 * x * tl.load", Verdict.WRONG)])
def test_a_kernel_in_float8_is_judged(
    pool: LocalPool, request_for: Callable[..., EvaluationRequest], tmp_path: Path, change: str, verdict: Verdict
) -> None:
    """A right kernel passes with both formats named as emulated; one that is off by half of a last place is wrong."""
    file = tmp_path / "requantise.py"
    file.write_text(PROBLEM)
    found = asyncio.run(pool.evaluate(request_for(KERNEL.replace("x * tl.load", change), of=load_problem(file))))

    assert found.verdict is verdict, (found.notes, found.log)
    assert found.correctness is not None
    assert found.correctness.emulated == ("float8_e4m3fn", "float8_e5m2")
