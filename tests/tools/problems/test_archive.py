"""Modules given in Python: exported, kept as text, opened where the user's code is not."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from tools.errors import UserError
from tools.problems import open_problem, problem_from_module, small_variants
from tools.records import Problem, ProblemForm


class Gate(nn.Module):
    """A module of this test file, which another process cannot import."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(12, 7)

    def forward(self, x: torch.Tensor, index: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Use a float and an integer argument."""
        y = torch.sigmoid(self.linear(x))
        return y, y[index]


@pytest.fixture(scope="module")
def gate() -> tuple[Gate, Problem]:
    """A module in evaluation mode and its problem."""
    module = Gate().eval()
    return module, problem_from_module(module, (torch.randn(20, 12) * 3 + 1, torch.randint(0, 20, (5,))), name="gate")


def test_exported_module_keeps_weights_and_abi(gate: tuple[Gate, Problem]) -> None:
    """The reopened module computes what the user's did."""
    module, problem = gate
    assert problem.form is ProblemForm.EXPORTED
    assert [(a.name, a.shape, a.dtype) for a in problem.abi.inputs] == [("x", (20, 12), "float32"), ("index", (5,), "int64")]
    reference = open_problem(problem)
    assert list(reference.parameters()) == [spec.name for spec in problem.abi.parameters] == ["linear.weight", "linear.bias"]
    inputs = reference.inputs(seed=4)
    assert all(torch.equal(a, b) for a, b in zip(reference.outputs(inputs), module(*inputs), strict=True))
    assert not problem.abi.training
    assert problem.work.matmul_flops == 2 * 20 * 12 * 7


def test_inputs_follow_the_examples(gate: tuple[Gate, Problem]) -> None:
    """Floats keep mean and spread, integers stay within the range of the example, both follow the seed."""
    reference = open_problem(gate[1])
    x, index = reference.inputs(seed=4)
    assert torch.equal(x, reference.inputs(seed=4)[0])
    assert not torch.equal(x, reference.inputs(seed=5)[0])
    assert 2.0 < float(x.std()) < 4.0
    assert 0 <= int(index.min()) <= int(index.max()) < 20


def test_positive_examples_stay_positive() -> None:
    """An argument whose example is never negative is drawn from its range: a logarithm stays defined."""
    problem = problem_from_module(nn.Softplus(), (torch.rand(50, 40) + 0.5,))
    x = open_problem(problem).inputs(seed=1)[0]
    assert problem.name == "softplus"
    assert 0.5 <= float(x.min()) < float(x.max()) <= 1.5


def test_complex_examples_are_drawn_by_their_parts() -> None:
    """The real part keeps its range, and the imaginary one its own."""
    example = torch.complex(torch.rand(50, 40) + 0.5, torch.randn(50, 40))
    x = open_problem(problem_from_module(nn.Identity(), (example,))).inputs(seed=1)[0]
    assert x.dtype == torch.complex64
    assert 0.5 <= float(x.real.min()) < float(x.real.max()) <= 1.5
    assert float(x.imag.min()) < -1.0


@pytest.mark.slow
def test_archive_opens_without_the_users_code(gate: tuple[Gate, Problem], tmp_path: Path) -> None:
    """Another process needs the record alone."""
    path = tmp_path / "problem.json"
    path.write_text(gate[1].model_dump_json())
    code = (
        f"from pathlib import Path; from tools.records import Problem; from tools.problems import open_problem\n"
        f"r = open_problem(Problem.model_validate_json(Path({str(path)!r}).read_text()))\n"
        f"assert [tuple(o.shape) for o in r.outputs(r.inputs(seed=1))] == [(20, 7), (5, 7)]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_random_module_is_refused() -> None:
    """Dropout in training mode is no function of its inputs."""
    with pytest.raises(UserError, match="not deterministic"):
        problem_from_module(nn.Dropout(0.5), (torch.randn(30, 30),))


def test_module_that_cannot_be_exported_is_refused() -> None:
    """The reason of torch.export is passed on in one line."""

    class Branch(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if x.sum() > 0 else -x

    with pytest.raises(UserError, match="cannot be exported") as caught:
        problem_from_module(Branch(), (torch.randn(3, 4),))
    assert "\n" not in caught.value.what


def test_damaged_archive_is_refused(gate: tuple[Gate, Problem]) -> None:
    """A record whose archive cannot be read gets a clear line."""
    with pytest.raises(UserError, match="cannot be opened"):
        open_problem(gate[1].model_copy(update={"source": "bm90aGluZw=="}))


class Rows(nn.Module):
    """What of its inputs must have which size."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(48, 96)

    def forward(self, x: torch.Tensor, kept: torch.Tensor, scale: float) -> torch.Tensor:
        """Multiply by a weight of one size, add in groups of eight, and choose rows."""
        return (self.linear(x) * scale).view(x.shape[0], x.shape[1] // 8, 8, 96).sum(2)[kept]


def test_free_sizes_of_a_module_are_varied() -> None:
    """Of a module given in Python the sizes that its weights and views leave free are varied, and indices stay within them."""
    module = Rows().eval()
    problem = problem_from_module(module, (torch.randn(4096, 128, 48), torch.randint(0, 4096, (500,)), 2.0), name="rows")
    variants = small_variants(problem)

    assert len(variants) >= 2
    for variant in variants:
        rows, groups, columns = variant.abi.inputs[0].shape
        assert rows < 100
        assert not groups % 8
        assert columns == 48
        reference = open_problem(variant)
        inputs = reference.inputs(seed=3)
        assert torch.equal(reference.outputs(inputs)[0], module(*inputs))


def test_a_module_that_leaves_no_size_free_has_no_variants() -> None:
    """A module whose sizes are tied to numbers of its own has no variants, and is a problem all the same."""

    class Fixed(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            """Take a fixed shape alone."""
            return x.reshape(16, 2048).cumsum(0) + torch.ones(128, 256).reshape(16, 2048)

    assert small_variants(problem_from_module(Fixed(), (torch.randn(128, 256),))) == ()
