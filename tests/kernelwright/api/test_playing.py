"""Calls of a delivered kernel that are played again."""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from kernelwright.api.loading import load_module
from tests.tools.models.test_playing import Kernel
from tests.tools.models.test_visible import KERNEL
from tools.guards.contract import contract_of
from tools.guards.text import guarded
from tools.problems import load_problem, small_variants

X = torch.linspace(-1.0, 1.0, 96).view(6, 16)
REFERENCE = """import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(16))

    def forward(self, x):
        return x * self.weight


rows = 6
SMALL_SIZES = [{"rows": 3}, {"rows": 5}]


def get_inputs():
    return [torch.randn(rows, 16)]


def get_init_inputs():
    return []
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> nn.Module:
    """A loaded file with its guard, whose kernel counts its launches and computes on the CPU."""
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    (tmp_path / "scale.py").write_text(REFERENCE)
    problem = load_problem(tmp_path / "scale.py")
    (tmp_path / "kernel.py").write_text(guarded(KERNEL, contract_of(problem, small_variants(problem))))
    module = load_module(tmp_path / "kernel.py", "[]", None)
    file = sys.modules[type(module).__module__]
    monkeypatch.setattr(file, "scale_kernel", Kernel(file.scale_kernel.fn))
    return module.requires_grad_(False)


def kernel_of(module: nn.Module) -> Kernel:
    """The kernel of a module's file."""
    kernel = sys.modules[type(module).__module__].scale_kernel
    assert isinstance(kernel, Kernel)
    return kernel


def right(module: nn.Module, x: torch.Tensor, times: int = 1) -> None:
    """Ask several times, and look at each answer."""
    for _ in range(times):
        assert torch.equal(module(x), x * module.weight)


def test_the_third_call_of_a_shape_and_all_after_it_are_played(module: nn.Module) -> None:
    """The first meets the guard, the second is recorded; other rows begin anew, and what was known stays."""
    right(module, X, 5)
    assert (kernel_of(module).ordinary, kernel_of(module).again) == (2, 3)
    right(module, X[:3].contiguous(), 3)
    right(module, X + 1.0)
    assert (kernel_of(module).ordinary, kernel_of(module).again) == (4, 5)


def test_weights_are_read_where_they_lie(module: nn.Module) -> None:
    """Changed in place, and replaced by others, in a copy of the module too."""
    right(module, X, 3)
    module.weight.mul_(2.0)
    right(module, X)
    module.weight = nn.Parameter(torch.rand(16), requires_grad=False)
    right(module, X)
    other = copy.deepcopy(module)
    other.weight.add_(1.0)
    right(other, X, 4)
    right(module, X)
    assert not torch.equal(other(X), module(X))
    shallow = copy.copy(module)
    shallow._parameters = {"weight": nn.Parameter(torch.rand(16), requires_grad=False)}
    right(shallow, X, 4)
    right(module, X)


def test_what_the_guard_refuses_is_refused_after_calls_that_were_played(module: nn.Module) -> None:
    """Another dtype, another rank, a gradient; what is not contiguous goes the ordinary way, by position and by name."""
    right(module, X, 4)
    for wrong in (X.half(), X[0]):
        with pytest.raises(ValueError, match="was not made for"):
            module(wrong)
    module.weight.requires_grad_(True)
    with pytest.raises(ValueError, match="gradient"):
        module(X)
    with torch.no_grad():
        right(module, X, 3)
        right(module, X.t().contiguous().t())
        assert torch.equal(module(x=X), X * module.weight)


def test_files_whose_host_code_does_more_are_left_alone(tmp_path: Path) -> None:
    """One that prints runs as it is written."""
    (tmp_path / "kernel.py").write_text(KERNEL.replace("    return y\n", "    print(y.shape)\n    return y\n"))
    assert not hasattr(type(load_module(tmp_path / "kernel.py", "[]", None)).forward, "__wrapped__")
