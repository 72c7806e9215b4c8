"""With no evaluations an operator is the kernel that the cost model chooses first."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from graphs.run.settings import RunSettings
from kernelwright.models.first_choices import first_choices
from kernelwright.models.records import ModelSettings
from tests.tools.models.samples import Norm
from tools.hardware import load_sheet
from tools.models.capture import capture
from tools.models.choice import choose
from tools.models.loading import Workload
from tools.records import DEFAULT_POLICY


def test_a_kernel_is_written_and_told_as_not_judged(tmp_path: Path) -> None:
    """It comes with its guards and an estimate."""
    model = nn.Sequential(Norm(), nn.Linear(16, 16), Norm()).eval().requires_grad_(False)
    found = capture(model, [Workload("rows", (torch.randn(6, 16),), {}, 1.0)])
    settings = ModelSettings(run=RunSettings(target="h200", memory=False), budget=0)
    rows = choose(found, load_sheet("h200"), DEFAULT_POLICY, budget=1, most=4, measured=False)
    [(outcome, kernel)] = first_choices(rows, settings, {group.name: group for group in found.groups}, tmp_path)
    assert outcome.reason.startswith("Not judged by itself")
    assert (outcome.tier, outcome.speedup > 1.0) == ("estimated", True)
    assert kernel is not None
    assert "@triton.jit" in kernel.kernel
