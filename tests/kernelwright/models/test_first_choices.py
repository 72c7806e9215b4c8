"""With no evaluations an operator is the kernel that the cost model chooses first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from graphs.run.settings import RunSettings
from kernelwright.models.first_choices import first_choices, modelled
from kernelwright.models.records import ModelSettings
from kernelwright.models.working import choose_from
from tests.tools.models.samples import Norm
from tools.hardware import load_sheet
from tools.models.capturing.capture import capture
from tools.models.choosing.choice import choose
from tools.models.loading import Workload
from tools.models.packaging.guard_text import fits_text
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


class Halves(nn.Module):
    """Has a norm work on a part of each row, and draws random numbers, so that it is no operator itself."""

    def __init__(self, *, turned: bool) -> None:
        super().__init__()
        self.norm, self.turned = Norm(), turned

    def forward(self, x: torch.Tensor) -> Any:
        """Rows that lie apart, or elements that do."""
        return self.norm(x.T if self.turned else x[:, :16]) + torch.rand(16)


@pytest.mark.parametrize("turned", [False, True])
def test_a_part_of_a_wider_tensor_is_read_where_it_lies(tmp_path: Path, *, turned: bool) -> None:
    """By the steps between its rows, which the guard asks about; what is turned is copied first."""
    model = Halves(turned=turned).eval().requires_grad_(False)
    found = capture(model, [Workload("rows", (torch.randn(16, 6) if turned else torch.randn(6, 32),), {}, 1.0)])
    [norm] = [group for group in found.groups if group.title == "Norm"]
    settings = ModelSettings(run=RunSettings(target="h200", memory=False), budget=0)
    rows = choose(found, load_sheet("h200"), DEFAULT_POLICY, budget=1, most=4, measured=False)
    [(_, kernel)] = first_choices([row for row in rows if row.group == norm.name], settings, {norm.name: norm}, tmp_path)
    assert kernel is not None
    guard = fits_text(norm.name, kernel.contract, kernel.trace)
    assert ("x.contiguous()" in kernel.kernel, "x.stride(0)" in kernel.kernel) == (turned, not turned)
    assert ("x.stride(-1) == 1" in guard) is not turned


def test_modules_are_replaced_by_what_their_kernels_would_take(tmp_path: Path) -> None:
    """Without evaluations each group's kernel is modelled before anything is chosen; what is too small a part of the model is not."""
    model = nn.Sequential(Norm(), nn.Linear(16, 16), Norm()).eval().requires_grad_(False)
    found = capture(model, [Workload("rows", (torch.randn(6, 16),), {}, 1.0)])
    small = found.model_copy(update={"groups": tuple(one.model_copy(update={"share": 0.001}) for one in found.groups)})
    settings = ModelSettings(run=RunSettings(target="h200", memory=False), budget=0)
    times = {name: one.us for name, one in modelled(found, settings, measured=False).items()}
    rows = choose(found, load_sheet("h200"), DEFAULT_POLICY, budget=1, most=4, measured=False, modelled=times)
    for row in rows:
        share = next(group.share for group in found.groups if group.name == row.group)
        if row.group in times and not row.why_not.startswith("in or around"):
            assert row.gain == pytest.approx(1 / (1 - share * (1 - min(1.0, times[row.group] / row.eager_us))))
    assert modelled(small, settings, measured=False) == {}


def test_norms_alone_promise_nothing_beside_torch_compile() -> None:
    """Its kernel is one like ours, by the same model; where it is not looked at, the same norms are replaced."""
    model = nn.Sequential(Norm(), nn.Linear(16, 16), Norm()).eval().requires_grad_(False)
    found = capture(model, [Workload("rows", (torch.randn(6, 16),), {}, 1.0)])
    norms = found.model_copy(update={"groups": tuple(group for group in found.groups if group.title == "Norm")})
    asked = ModelSettings(run=RunSettings(target="h200", memory=False), budget=0)
    [beside] = choose_from(norms, load_sheet("h200"), asked, measured=False)
    assert (beside.budget, beside.why_not) == (0, "torch.compile would gain as much, estimated")
    [alone] = choose_from(norms, load_sheet("h200"), asked.model_copy(update={"compiled": False}), measured=False)
    assert (alone.budget, alone.compiled_us) == (1, 0.0)
