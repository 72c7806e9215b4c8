"""The plug-in for vLLM, against vLLM's documented interface: vLLM itself is not installed here."""

# ruff: noqa: D102 - what a forward does, its class says

from __future__ import annotations

import importlib
import inspect
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from tests.tools.models.packaging.test_package import CONTRACT, KERNEL
from tools.guards.contract import Contract, Size, TensorRule
from tools.models.capturing.capture import capture
from tools.models.loading import Workload
from tools.models.packaging.delivered import Delivered
from tools.models.packaging.package import write_package
from tools.models.packaging.vllm import PLUGIN, rms_norm_eps


class RMSNorm(nn.Module):
    """As Llama has it, and with `shift` as Gemma has it."""

    def __init__(self, shift: float = 0.0) -> None:
        super().__init__()
        self.weight, self.shift = nn.Parameter(torch.rand(16) + 0.5), shift

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        narrow = (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype)
        return self.weight * narrow if not self.shift else (self.weight + self.shift) * narrow


class Operator:
    """Checks an implementation as vLLM's `register_impl` documents it: a name of its own, the schema, as many arguments for the guard."""

    def __init__(self, native: Callable[..., Any]) -> None:
        self.impls: dict[str, Any] = {}
        self._native = native

    def register_impl(
        self, provider: str, *, supported: bool = True, supports_args: Callable[..., bool] | None = None
    ) -> Callable[[Any], Any]:
        assert provider not in self.impls
        assert supports_args is not None
        assert len(inspect.signature(supports_args).parameters) == len(inspect.signature(self._native).parameters)

        def register(function: Callable[..., Any]) -> Any:
            schema: Any = torch.library.infer_schema
            assert schema(function, mutates_args=[]) == schema(self._native, mutates_args=[])
            self.impls[provider] = SimpleNamespace(function=function, takes=supports_args)
            return function

        return register


def native(x: torch.Tensor, weight: torch.Tensor | None, epsilon: float, variance_size: int | None = None) -> torch.Tensor:
    """VLLM's signature; its own meaning is written in its documentation."""
    wide = x.float()
    scaled = (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + epsilon)).to(x.dtype)
    return scaled if weight is None else scaled * weight


def delivered(module: nn.Module) -> Delivered:
    """A norm's operator, for up to twelve rows in a batch of one."""
    found = capture(nn.Sequential(module).eval(), [Workload("rows", (torch.randn(1, 6, 16),), {}, 1.0)])
    [norm] = [group for group in found.groups if group.title == "RMSNorm"]
    assert norm.trace is not None
    contract = Contract((TensorRule("x", "float32", (1, Size("any"), 16)),), CONTRACT.parameters, (), None)
    return Delivered(group=norm, trace=norm.trace, contract=contract, kernel=KERNEL, evidence=None)


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of the plug-in."""
    folder = tmp_path_factory.mktemp("served") / "faster_llama"
    write_package(folder, "Llama", "", [delivered(RMSNorm())], {})
    return folder / PLUGIN


@pytest.fixture
def operator(plugin: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What vLLM holds after its plug-ins were loaded, by the project's entry point."""
    operator = Operator(native)
    vllm: Any = ModuleType("vllm")
    vllm.ir = SimpleNamespace(ops=SimpleNamespace(rms_norm=operator))
    monkeypatch.setitem(sys.modules, "vllm", vllm)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.syspath_prepend(str(plugin))
    [entry] = tomllib.loads((plugin / "pyproject.toml").read_text())["project"]["entry-points"]["vllm.general_plugins"].values()
    module, _, function = entry.partition(":")
    register = getattr(importlib.import_module(module), function)
    register()
    register()
    [found] = operator.impls.values()
    return found


@pytest.mark.parametrize("shape", [(6, 16), (3, 2, 16), (1, 6, 16), (12, 16)])
def test_rows_in_any_shape_are_answered_as_vllm_does(operator: Any, shape: tuple[int, ...]) -> None:
    """VLLM has no batch dimension; the model that was captured had one."""
    x, weight = torch.randn(shape), torch.rand(16)
    assert operator.takes(x, weight, 1e-5, None)
    found = operator.function(x, weight, 1e-5, None)
    assert found.shape == x.shape
    torch.testing.assert_close(found, native(x, weight, 1e-5))


@pytest.mark.parametrize(
    ("x", "weight", "epsilon", "variance_size"),
    [
        (torch.randn(6, 16), torch.rand(16), 1e-6, None),
        (torch.randn(6, 16), torch.rand(16), 1e-5, 8),
        (torch.randn(6, 16), None, 1e-5, None),
        (torch.randn(6, 8), torch.rand(8), 1e-5, None),
        (torch.randn(100, 16), torch.rand(16), 1e-5, None),
        (torch.randn(6, 16).bfloat16(), torch.rand(16).bfloat16(), 1e-5, None),
        (torch.randn(16, 6).t(), torch.rand(16), 1e-5, None),
    ],
)
def test_what_no_kernel_was_made_for_is_vllms_own(operator: Any, x: Any, weight: Any, epsilon: float, variance_size: int | None) -> None:
    """Another epsilon, a part of a row, no weight, another width, many more rows, another dtype, rows that lie apart."""
    assert not operator.takes(x, weight, epsilon, variance_size)


def test_norms_that_mean_something_else_are_not_offered(tmp_path: Path) -> None:
    """Gemma adds one to its weight; a package without any of vLLM's operators has no plug-in."""
    gemma = delivered(RMSNorm(shift=1.0))
    assert rms_norm_eps(gemma) is None
    write_package(tmp_path / "gemma", "Gemma", "", [gemma], {})
    assert not (tmp_path / "gemma" / PLUGIN).exists()
