"""A model's proof in a process of its own, without a GPU: its kernels are interpreted there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.hardware import load_sheet
from tools.hardware.devices import INTERPRETER
from tools.models.apart import ModelProcesses
from tools.models.jobs import ProofJob
from tools.records import DEFAULT_POLICY

MODEL = """import torch
from torch import nn


class Wave(nn.Module):
    def forward(self, x):
        return torch.tanh(x)


def make():
    return Wave().eval()


def workloads():
    return {"numbers": (torch.randn(64),)}
"""
PACKAGE = """import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def wave_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    off = tl.arange(0, BLOCK)
    tl.store(y_ptr + off, libdevice.tanh(tl.load(x_ptr + off)))


def forward(x):
    y = torch.empty_like(x)
    wave_kernel[(1,)](x, y, BLOCK=64)
    return y


def apply(model, *, without=(), verify=False):
    model.forward = forward
    return [""]


def remove(model):
    model.__dict__.pop("forward", None)


def counts(*, reset=False):
    return {"hits": {"wave": 2}, "misses": {}}
"""


@pytest.mark.slow
def test_the_interpreter_of_a_proof_knows_what_that_of_an_evaluation_does(tmp_path: Path) -> None:
    """A kernel that calls NVIDIA's libdevice, which Triton's own interpreter has no functions of, is proven."""
    (tmp_path / "wave.py").write_text(MODEL)
    job = ProofJob(
        file=str(tmp_path / "wave.py"),
        source=MODEL,
        beside={},
        factory="",
        autocast="",
        device="cpu",
        policy=DEFAULT_POLICY,
        sheet=load_sheet("h200"),
        package={"__init__.py": PACKAGE},
        operators=("wave",),
        timed=False,
        compiled=False,
        max_autotune=False,
        rounds=1,
        seed=1,
        threads=1,
        limit_s=120.0,
    )
    processes = ModelProcesses(tmp_path, INTERPRETER)
    try:
        assert processes.prove(job).holds
    finally:
        processes.close()
