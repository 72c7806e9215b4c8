"""Models under torch.autocast: what is traced there, what an operator made for it answers, and what is compared with."""

# ruff: noqa: D102 - what a forward does, its class says

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tools.autocast.as_cuda import round_as_cpu, rounding_as_cuda
from tools.autocast.rules import REFUSED, RULES
from tools.autocast.state import never_rounding, rounding_to
from tools.errors import UserError
from tools.guards.contract import Contract, Size, TensorRule
from tools.models.capturing.capture import capture
from tools.models.loading import ModelFile, Workload
from tools.models.packaging.delivered import Delivered
from tools.models.packaging.package import write_package
from tools.models.records import Group

X = torch.randn(6, 16, generator=torch.Generator().manual_seed(0))
KERNEL = """
import torch
from torch import nn

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(16, 16)), nn.Parameter(torch.randn(16))

    def forward(self, x):
        assert (x @ x.T).dtype is torch.float32
        return nn.functional.linear(x.bfloat16(), self.weight.bfloat16(), self.bias.bfloat16())
"""
"""Stands for a kernel whose host code calls PyTorch in float32, too."""


class Mixed(nn.Module):
    """A product that autocast rounds, a softmax that it widens, and a product in a region without it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> Any:
        weights = torch.softmax(self.first(x), -1)
        with torch.autocast(x.device.type, enabled=False):
            return x + self.last(weights.float())


class Twice(nn.Module):
    """The same kind of module twice."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = Mixed(), Mixed()

    def forward(self, x: torch.Tensor) -> Any:
        return self.two(self.one(x))


@pytest.fixture(autouse=True)
def _own_rules() -> Iterator[None]:
    """Begin and end with the CPU's own rules: a process that loads a model file keeps CUDA's, and so would this one."""
    round_as_cpu()
    yield
    round_as_cpu()


@pytest.fixture(scope="module")
def groups() -> dict[str, Group]:
    """What is captured of it under autocast as CUDA has it."""
    torch.manual_seed(0)
    with rounding_as_cuda():
        found = capture(Twice().eval(), [Workload("rows", (X,), {}, 1.0, "bfloat16")])
    return {f"{group.title} {group.autocast}".strip(): group for group in found.groups}


@pytest.fixture
def package(groups: dict[str, Group], tmp_path: Path) -> Iterator[Any]:
    """A package whose operator was made for products under autocast."""
    group = groups["Linear bfloat16"]
    assert group.trace is not None
    rules = TensorRule("weight", "float32", (16, 16)), TensorRule("bias", "float32", (16,))
    contract = Contract((TensorRule("input", "float32", (Size("any"), 16)),), rules, (), None)
    folder = tmp_path / f"rounding_{tmp_path.name}"
    write_package(folder, "Twice", "A test.", [Delivered(group, group.trace, contract, KERNEL, None)], {})
    with pytest.MonkeyPatch.context() as patches:
        patches.setenv("TRITON_INTERPRET", "1")
        patches.syspath_prepend(str(tmp_path))
        importlib.invalidate_caches()
        yield importlib.import_module(folder.name)


def written(group: Group) -> Any:
    """Make the model of a group's problem file."""
    assert group.trace is not None
    names: dict[str, Any] = {}
    exec(group.trace.source, names)
    return names["Model"]()


def test_the_rules_are_those_that_this_torch_has_for_cuda() -> None:
    """An operator that torch rounds for and that the list lacks would be traced without its casts."""
    known: Any = torch._C
    assert {*RULES, f"aten::{REFUSED}"} == set(known._dispatch_get_registrations_for_dispatch_key("AutocastCUDA"))


def test_on_a_cpu_autocast_rounds_as_on_cuda_for_a_while() -> None:
    """CUDA computes a softmax of bfloat16 in float32, the CPU does not."""
    given = X.bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with rounding_as_cuda():
            assert torch.softmax(given, -1).dtype is torch.float32
            assert (X @ X.T).dtype is torch.bfloat16
        assert torch.softmax(given, -1).dtype is torch.bfloat16


def test_a_trace_has_the_casts_of_autocast(groups: dict[str, Group]) -> None:
    """Written out, they give to the bit what the module gives; a region without autocast is left as it is."""
    group = groups["Mixed bfloat16"]
    model, module = written(group), Mixed().eval()
    model.load_state_dict({name: module.state_dict()[own] for name, own in group.trace.parameters.items()})  # type: ignore[union-attr]
    with torch.no_grad(), rounding_as_cuda(), rounding_to("bfloat16", "cpu"):
        expected = module(X)
    with torch.no_grad():
        assert torch.equal(model(X), expected)
    assert groups["Linear"].calls == {"rows": 2}


def test_an_oracle_of_such_a_trace_does_not_round(groups: dict[str, Group]) -> None:
    """In float64 the file computes what the module does without autocast."""
    group = groups["Mixed bfloat16"]
    model, module = written(group).double(), Mixed().eval().double()
    model.load_state_dict({name: module.state_dict()[own] for name, own in group.trace.parameters.items()})  # type: ignore[union-attr]
    from tools.evaluation.trusted.widening import widened_casts

    with torch.no_grad(), widened_casts():
        assert torch.allclose(model(X.double()), module(X.double()), rtol=1e-12)


def test_what_is_compared_with_does_not_round_where_a_forward_begins_autocast() -> None:
    """The oracle of a whole model runs without autocast, whoever begins it."""
    with never_rounding(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert (X @ X.T).dtype is torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (X @ X.T).dtype is torch.bfloat16


def test_an_operator_answers_under_the_autocast_that_it_was_made_for(package: Any) -> None:
    """Without it, or to another dtype, the original does, and the reason is counted; a second call is known, and no exception."""
    model = Twice().eval()
    package.apply(model)
    with torch.no_grad():
        for _ in range(2):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                model(X)
            model(X)
            with torch.autocast("cpu", dtype=torch.float16):
                model(X)
    found = package.counts(reset=True)
    assert sum(found["hits"].values()) == 4
    assert found["misses"] == {"Linear: no autocast to bfloat16": 8}


def test_a_compiler_takes_it_under_that_autocast_alone(package: Any) -> None:
    """The state of autocast is traced without a graph break."""
    model = Twice().eval()
    package.apply(model)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    with torch.no_grad():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            compiled(X)
        assert sum(package.counts(reset=True)["hits"].values()) == 2
        compiled(X)
    assert not package.counts(reset=True)["hits"]


def test_a_file_says_that_its_workloads_run_under_autocast(tmp_path: Path) -> None:
    """`AUTOCAST` names the dtype; the command line may name another; what is no half is refused."""
    place = tmp_path / "rounded_model.py"
    place.write_text(
        "import torch\nAUTOCAST = torch.bfloat16\ndef make():\n    return torch.nn.Linear(2, 2)\n"
        "def workloads():\n    return {'rows': (torch.ones(1, 2),)}\n"
    )
    model = nn.Linear(2, 2)
    assert [one.autocast for one in ModelFile(place).workloads(model, 1, "cpu")] == ["bfloat16"]
    assert [one.autocast for one in ModelFile(place, "", "fp16").workloads(model, 1, "cpu")] == ["float16"]
    with pytest.raises(UserError, match="float32"):
        ModelFile(place, "", "float32")
