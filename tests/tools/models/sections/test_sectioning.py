"""What a large module does between the modules that it calls is captured, replaced and given back as if it were a module."""

# ruff: noqa: D102 - what a forward does, its class says

from __future__ import annotations

import copy
import functools
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.tools.models.packaging.test_package import compiled_whole, imported_from
from tools.guards import contract_of
from tools.models.capturing.capture import capture
from tools.models.loading import Workload
from tools.models.packaging.delivered import Delivered
from tools.models.packaging.package import write_package
from tools.models.records import Group
from tools.models.runtime.sections import named
from tools.problems import load_problem

WIDTH, WORDS = 16, 64


class Sampler(nn.Module):
    """Eight layers, and a choice among words after the last: too large to be one operator."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.norm, self.head = nn.Embedding(WORDS, WIDTH), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH)) for _ in range(8))
        self.scale = nn.Parameter(torch.rand(WIDTH))
        self.temperature = 0.7

    def forward(self, tokens: torch.Tensor) -> Any:
        rows, length = tokens.shape
        x = self.embed(tokens)
        for layer in self.layers:
            x = x + layer(x) * self.scale
        x = self.norm(x * torch.sigmoid(x))
        logits = self.head(x[:, length - 1].view(rows, WIDTH)) / self.temperature
        chances = torch.softmax(30.0 * torch.tanh(logits / 30.0), -1)
        return chances, -(chances * torch.log(chances + 1e-9)).sum(-1)


TOKENS = torch.arange(24).view(4, 6)
WORKLOADS = [Workload("decode", (TOKENS,), {}, 1.0)]


@pytest.fixture(scope="module")
def groups() -> dict[str, Group]:
    """What was captured, by name."""
    return {group.name: group for group in capture(sampler(), WORKLOADS).groups}


def sampler() -> Any:
    """Make the model."""
    torch.manual_seed(1)
    return Sampler().eval().requires_grad_(False)


def sections(groups: dict[str, Group]) -> dict[str, Group]:
    """Those of them that are sections."""
    return {name: group for name, group in groups.items() if group.forward is not None}


def test_what_the_model_does_after_its_last_layer_is_captured(groups: dict[str, Group]) -> None:
    """Its own operators between children are traced, each run of them as one; a residual in a loop is called once a layer."""
    residual, norm, choice = sorted(sections(groups).values(), key=lambda group: group.paths)
    assert (residual.calls, norm.calls, choice.calls) == ({"decode": 8}, {"decode": 1}, {"decode": 1})
    assert residual.trace is not None
    assert [one.name for one in residual.trace.inputs] == ["x", "part_1", "scale"]
    assert choice.trace is not None
    assert len(choice.trace.outputs) == 2
    assert norm.trace is not None
    assert norm.trace.parameters == {"norm_weight": "norm.weight", "norm_bias": "norm.bias"}
    assert groups["layer_norm"].places == (f"{norm.paths[0]}.norm",)
    assert "worked on in parts" in groups["sampler"].reason


def test_a_capture_leaves_the_model_as_it_was() -> None:
    """Classes, attributes and outputs are the same after it."""
    model = sampler()
    before, attributes = model(TOKENS), set(vars(model))
    capture(model, WORKLOADS)
    assert type(model) is Sampler
    assert set(vars(model)) == attributes
    assert all(map(torch.equal, model(TOKENS), before))


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory, groups: dict[str, Group]) -> Any:
    """A package whose kernels are the sections' own references."""
    folder: Path = tmp_path_factory.mktemp("packages") / "sampler_package"
    write_package(folder, "Sampler", "A test.", [_delivered(group, folder.parent) for group in sections(groups).values()], {})
    return imported_from(folder)


def _delivered(group: Group, folder: Path) -> Delivered:
    assert group.trace is not None
    file = folder / f"{group.name}.py"
    file.write_text(group.trace.source)
    problem = load_problem(file)
    kernel = group.trace.source.replace("class Model(", "class ModelNew(")
    return Delivered(group=group, trace=group.trace, contract=contract_of(problem, [problem]), kernel=kernel, evidence=None)


def test_operators_take_the_place_of_sections_and_give_it_back(package: Any) -> None:
    """The outputs are the model's; its state dict and its list of modules know nothing of sections; removing brings its class back."""
    model = sampler()
    before, keys, modules = model(TOKENS), list(model.state_dict()), list(dict(model.named_modules()))
    package.counts(reset=True)
    assert len(package.apply(model)) == 3
    assert all(map(torch.allclose, model(TOKENS), before))
    assert sorted(package.counts(reset=True)["hits"].values()) == [1, 1, 8]
    assert (list(model.state_dict()), list(dict(model.named_modules()))) == (keys, modules)
    package.remove(model)
    assert type(model) is Sampler
    assert all(map(torch.equal, model(TOKENS), before))
    assert not package.counts()["hits"]


def test_a_copy_of_a_model_has_sections_of_its_own(package: Any) -> None:
    """The copy's other weights, another module in the place of one, and its training mode, are its own."""
    model = sampler()
    package.apply(model)
    other = copy.deepcopy(model)
    expected = sampler()
    for one in (other, expected):
        one.scale.mul_(2.0)
        one.norm = nn.LayerNorm(WIDTH).requires_grad_(False)
        one.norm.weight.fill_(3.0)
    assert all(map(torch.allclose, other(TOKENS), expected(TOKENS)))
    assert all(mine is not theirs for (_, mine), (_, theirs) in zip(named(model), named(other), strict=True))
    other.train()
    package.counts(reset=True)
    other(TOKENS)
    assert not package.counts()["hits"]
    model(TOKENS)
    assert package.counts()["hits"]


def test_a_module_with_another_forward_is_left_alone(package: Any) -> None:
    """Its source is not what was cut: that is said, and it runs as it is."""

    class Other(Sampler):
        def forward(self, tokens: torch.Tensor) -> Any:
            return self.head(self.embed(tokens))

    model = Other().eval()
    with pytest.warns(UserWarning, match="left alone: section_"):
        assert package.apply(model) == []
    assert type(model) is Other


def test_torch_compile_sees_one_graph_with_the_sections_operators(package: Any) -> None:
    """There is no graph break, and the compiled model gives the same."""
    model = sampler()
    expected = model(TOKENS)
    package.apply(model)
    found, seen = compiled_whole(model, TOKENS)
    assert all(map(torch.allclose, found, expected))
    assert sum("sampler_section" in one for one in seen) >= 10


class Cached(nn.Module):
    """Counts what it has seen in an object that it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor, seen: Any) -> Any:
        x = torch.tanh(self.up(x)) * 2.0
        total = seen.added(x)
        halves = (torch.sin(total) + x).split(8, -1)
        seen.added(x)
        return self.down(torch.cat(halves[::-1], -1) * 2.0), seen


class Seen:
    """A cache."""

    total = torch.zeros(4, WIDTH)

    def added(self, x: torch.Tensor) -> torch.Tensor:
        self.total = self.total + x
        return self.total


def test_a_module_with_a_cache_has_sections_around_it() -> None:
    """What reads the cache stays in the forward; what is done with its contents is captured."""
    found = capture(Cached().eval(), [Workload("step", (torch.randn(4, WIDTH), Seen()), {}, 1.0)])
    forwards = [group.forward for group in found.groups if group.forward is not None]
    assert len(forwards) == 3
    assert "halves = self.section_" in forwards[0].text
    assert "total = seen.added(x)" in forwards[0].text
    [whole] = [group for group in found.groups if group.title == "Cached"]
    assert whole.reason.endswith("; 3 sections of its forward may be replaced")


def hidden(function: Any) -> Any:
    """Decorate a function so that what is called is not to be seen."""
    kept = [function]

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return kept[0](*args, **kwargs)

    return called


class Hidden(Sampler):
    """Its forward is decorated so."""

    forward = hidden(Sampler.forward)


class Both(nn.Module):
    """Two large modules, of which one cannot be cut."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = sampler(), Hidden().eval().requires_grad_(False)

    def forward(self, tokens: torch.Tensor) -> Any:
        return self.first(tokens), self.second(tokens)


def test_a_module_that_cannot_be_cut_costs_no_other_its_sections() -> None:
    """A decorator of an unknown kind keeps its own forward whole."""
    found = capture(Both().eval(), WORKLOADS, 40)
    paths = [group.paths for group in found.groups if group.forward is not None]
    assert len(paths) == 3
    assert all(path.startswith("first.") for own in paths for path in own)
    [hidden_one] = [group for group in found.groups if group.paths == ("second",)]
    assert "its forward is not cut (TypeError: " in hidden_one.reason


class Unlucky(nn.Module):
    """Counts rows between its layers, draws in one place, and is large."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(*(nn.Tanh() for _ in range(12))) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = len(x) + x.size(1)
        for layer in self.layers:
            x = layer(x)
        x = torch.sin(x) * 2.0
        x = x + torch.rand(rows)[:6]
        return torch.cos(x) * rows


def test_numbers_and_random_ones_stay_in_the_forward() -> None:
    """A section gives tensors alone, and none draws; what is left around them is still captured."""
    model = Unlucky().eval()
    found = capture(model, [Workload("rows", (torch.randn(4, 6),), {}, 1.0)])
    forwards = [group.forward for group in found.groups if group.forward]
    assert forwards
    assert "rows = len(x) + x.size(1)" in forwards[0].text
    assert "torch.rand(rows)" in forwards[0].text
    assert all(group.trace is not None for group in found.groups if group.forward)
