"""Modules are made without drawing weights that will be loaded anyway, and references of one problem share nothing."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
import torch

from tools.evaluation.trusted import reference
from tools.evaluation.trusted.reference import Oracle, opened
from tools.evaluation.untrusted import loading
from tools.problems import load_problem
from tools.records import ABI, Problem, TensorSpec

LINEAR = """
import torch


class Model(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.linear = torch.nn.Linear(columns, columns)
        self.first = float(self.linear.weight[0, 0])

    def forward(self, x):
        return self.linear(x) + self.first


def get_inputs():
    return [torch.randn(3, 5)]


def get_init_inputs():
    return [5]
"""

BY_FUNCTIONS = {
    "a lambda's closure": "layer = self.linear; self.call = lambda x: layer(x)",
    "a default": "self.call = lambda x, layer=self.linear: layer(x)",
    "a list of functions": "layer = self.linear; self.calls = [torch.relu, lambda x: layer(x)]; self.call = lambda x: self.calls[1](x)",
}
"""Constructors whose functions refer to a submodule."""
COMPUTED = LINEAR.replace("float(self.linear.weight[0, 0])", "self.linear.bias * 2")


def problem_of(source: str, folder: Path) -> Problem:
    """The problem of one file."""
    file = folder / "linear.py"
    file.write_text(source)
    return load_problem(file)


def test_a_candidates_weights_are_loaded_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its constructor draws nothing; loaded, it has the reference's weights; and torch draws again afterwards."""
    drawn = []
    monkeypatch.setattr(torch.Tensor, "uniform_", lambda tensor, *bounds, **_: drawn.append(bounds) or tensor)
    module = ModuleType("candidate")
    exec(LINEAR.replace("class Model(", "class ModelNew(").replace("float(self.linear.weight[0, 0])", "0.0"), module.__dict__)
    specs = (TensorSpec(name="linear.weight", shape=(5, 5), dtype="float32"), TensorSpec(name="linear.bias", shape=(5,), dtype="float32"))
    model = loading.make_model(module, ABI(arguments=(), outputs=(), parameters=specs, init="[5]"))
    assert not drawn

    values = {"linear.weight": torch.ones(5, 5), "linear.bias": torch.zeros(5)}
    loading.load_parameters(model, values, specs)
    assert model(torch.ones(1, 5)).tolist() == [[5.0] * 5]
    torch.nn.Linear(2, 2)
    assert len(drawn) == 2


def test_two_openings_have_equal_weights_and_share_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is a copy of what the first was when it was made, constants of the constructor included, whatever became of that."""
    monkeypatch.setattr(reference, "_kept", {})
    problem = problem_of(LINEAR, tmp_path)
    first = opened(problem)
    before = {name: value.clone() for name, value in first.parameters().items()}
    first.module.double()
    for value in first.parameters().values():
        value.zero_()
    second = opened(problem)

    assert all(torch.equal(value, before[name]) for name, value in second.parameters().items())
    assert second.module.first == first.module.first == float(before["linear.weight"][0, 0])
    assert len(reference._kept) == 1


@pytest.mark.parametrize("line", BY_FUNCTIONS.values(), ids=BY_FUNCTIONS)
def test_functions_of_a_module_use_its_own_parts(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a module calls a submodule through a function that it holds, another opening has its own, in float64 or anywhere."""
    monkeypatch.setattr(reference, "_kept", {})
    source = LINEAR.replace("self.first = float(self.linear.weight[0, 0])", line).replace("self.linear(x) + self.first", "self.call(x)")
    problem = problem_of(source, tmp_path)
    values = {name: torch.ones_like(value) for name, value in opened(problem).parameters().items()}
    assert Oracle(problem, values, "cpu").outputs([torch.ones(3, 5)])[0].tolist() == [[6.0] * 5] * 3


def test_functions_of_torch_do_not_keep_a_module_from_being_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that holds one is copied, not drawn again."""
    monkeypatch.setattr(reference, "_kept", {})
    line = "self.calls = {'relu': torch.nn.functional.relu, 'two': lambda x, factor=2: x * factor}"
    problem = problem_of(LINEAR.replace("self.first = ", f"{line}; self.first = "), tmp_path)
    opened(problem)
    monkeypatch.setattr("tools.problems.open_problem", None)
    assert opened(problem).module.linear is not reference._kept[problem.id].module.linear


def test_a_module_that_cannot_be_copied_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch does not copy a tensor that was computed: references that hold one are right and apart all the same."""
    monkeypatch.setattr(reference, "_kept", {})
    problem = problem_of(COMPUTED, tmp_path)
    first, second = opened(problem), opened(problem)
    values = first.parameters()
    assert all(torch.equal(value, values[name]) for name, value in second.parameters().items())
    assert first.module.linear is not second.module.linear
    truth = Oracle(problem, values, "cpu").outputs([torch.ones(3, 5)])[0]
    assert torch.allclose(truth.float(), first.outputs([torch.ones(3, 5)])[0])


def test_few_references_are_kept_and_few_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was used longest ago makes room; the last one is kept however large it is."""
    monkeypatch.setattr(reference, "_kept", {})
    monkeypatch.setattr(reference, "_KEPT_BYTES", 250)
    problems = [problem_of(f"# {number}\n{LINEAR}", tmp_path) for number in range(3)]
    for problem in (*problems, problems[1]):
        opened(problem)
    assert list(reference._kept) == [problems[2].id, problems[1].id]
    monkeypatch.setattr(reference, "_KEPT_BYTES", 1)
    opened(problems[0])
    assert list(reference._kept) == [problems[0].id]
