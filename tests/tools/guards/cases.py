"""References with a guarded module that computes as they do, by torch: what a guard says needs no kernel."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import torch

from tools.guards import contract_of, guarded, reference_text
from tools.records import ABI, Problem, ProblemForm, ScalarSpec, TensorSpec, Work

SOURCE = """
import torch


class Model(torch.nn.Module):
    def __init__(self, width, wide, scale=1.0):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(width, wide))
        self.scale = scale

    def forward(self, x, times):
        return self.net(x) * self.scale * times


def get_inputs():
    return [torch.randn(8, 6), 2]
"""
NEW = """
import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width, wide, scale=1.0):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(width, wide))
        self.scale = scale

    def forward(self, x, times):
        assert x.is_contiguous()
        return (x @ self.net[0].weight.detach().T + self.net[0].bias.detach()) * self.scale * times
"""
WORK = Work(operators=(), families=(), matmul_flops=0, pointwise_flops=0, eager_bytes=0)


def problem(rows: int = 8, width: int = 6, wide: int = 5, **changed: Any) -> Problem:
    """Make the problem at some sizes, without loading it."""
    abi = ABI(
        arguments=(TensorSpec(name="x", shape=(rows, width), dtype="float32"), ScalarSpec(name="times", value=2)),
        parameters=(
            TensorSpec(name="net.0.weight", shape=(wide, width), dtype="float32"),
            TensorSpec(name="net.0.bias", shape=(wide,), dtype="float32"),
        ),
        outputs=(TensorSpec(name="output0", shape=(rows, wide), dtype="float32"),),
        init=f"[{width}, {wide}]",
    )
    given = {"name": "linear", "form": ProblemForm.KERNELBENCH, "entry": "Model", "source": SOURCE, "abi": abi, "work": WORK}
    return Problem(**(given | changed))


VARIANTS = (problem(3, 7, 5), problem(1, 9, 5))
"""The width varies, the number of results does not."""


@cache
def text(*, refers: bool = False) -> str:
    """Write the guarded file."""
    return guarded(NEW, contract_of(problem(), VARIANTS), reference=reference_text(problem()) if refers else "")


def loaded(source: str) -> types.ModuleType:
    """Run a file."""
    module = types.ModuleType("guarded_file")
    sys.modules["guarded_file"] = module
    exec(compile(source, "guarded_file", "exec"), module.__dict__)
    return module


@cache
def _classes(*, refers: bool) -> Any:
    return loaded(text(refers=refers)).ModelNew


def made(*given: Any, refers: bool = False, **named: Any) -> Any:
    """Make the guarded module, frozen."""
    return _classes(refers=refers)(*(given or (6, 5)), **named).requires_grad_(False)


def example(**changed: Any) -> Mapping[str, Any]:
    """Make a right call's arguments."""
    return {"x": torch.arange(48.0).reshape(8, 6), "times": 2} | changed


def wrong() -> Iterator[tuple[str, dict[str, Any], str]]:
    """List calls that a file was not made for, with words of what it says of them."""
    x = example()["x"]
    yield "another rank", {"x": x[None]}, "x has 3 dimensions"
    yield "another dtype", {"x": x.double()}, "x is torch.float64, not torch.float32"
    yield "empty", {"x": x[:0]}, "x.shape[0] is 0"
    yield "another width", {"x": x[:, :4]}, "net.0.weight.shape[1] is 6, not x.shape[1], 4"
    yield "another value", {"times": 3}, "times is 3, not 2"
    yield "another type of value", {"times": 2.0}, "times is 2.0, not 2"
    yield "another device", {"x": x.to("meta")}, "not all is on one device"
    yield "a gradient", {"x": x.clone().requires_grad_()}, "a gradient is wanted of x"
