"""The emitted text is code that a person would keep."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.codegen.harness import generated, problem_of, trace_problem, traced, traced_text
from tests.tools.codegen.module.test_emitted import SETTINGS
from tests.tools.codegen.samples import SAMPLES, function
from tools.codegen import emit, initial_schedule


def emitted(name: str, setting: str = "registers") -> str:
    """Emit a sample."""
    problem, graph = traced(name)
    return emit(problem, graph, generated(graph, SETTINGS[setting])).source


def test_sizes_are_read_at_run_time() -> None:
    """No size of the problem as written appears in the code, only in docstrings."""
    tree = ast.parse(emitted("softmax"))
    constants = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, int)}
    assert not {33, 70} & constants


def test_constructor_is_the_references() -> None:
    """The emitted module has the reference's constructor, with `super()` and without the reference's name."""
    source = emitted("feed_forward")
    assert "super().__init__()" in source
    assert "nn.Sequential(nn.Linear(dim, wide), nn.GELU(), nn.Linear(wide, dim, bias=False))" in source
    assert "self.net[0].weight" in source
    assert "get_inputs" not in source


def test_every_kernel_and_module_has_a_docstring() -> None:
    """Each function of the device and the file itself say what they are for."""
    tree = ast.parse(emitted("rms"))
    kernels = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list]
    assert ast.get_docstring(tree)
    assert kernels
    assert all(ast.get_docstring(kernel) for kernel in kernels)


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_kernel_parameter_is_dead(setting: str) -> None:
    """Every parameter of every kernel is used by it."""
    for name in SAMPLES:
        for node in ast.parse(emitted(name, setting)).body:
            if isinstance(node, ast.FunctionDef) and node.decorator_list:
                used = {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}
                assert {argument.arg for argument in node.args.args} <= used, (name, node.name)


def test_a_mean_that_is_subtracted_is_rounded_correctly() -> None:
    """Of equal values a norm leaves nothing to magnify; a mean that is an answer itself is divided as everything else is."""
    assert "centring_mean(" in emitted("centred")
    assert "centring_mean" not in emitted("rms")


def test_emitted_source_has_no_lint(tmp_path: Path) -> None:
    """Ruff finds no undefined name, unused variable or import in any emitted source."""
    for name in SAMPLES:
        for setting in SETTINGS:
            (tmp_path / f"{name}_{setting}.py").write_text(emitted(name, setting))
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F", str(tmp_path)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout[-3000:]


def test_emission_is_deterministic() -> None:
    """The same schedule gives the same text."""
    assert emitted("channels") == emitted("channels")


LATER = """import torch

GROUPS = 2


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mixed = Mixed(width)

    def forward(self, x):
        return self.mixed(x)


class Mixed(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = torch.nn.Linear(width * GROUPS, width)

    def forward(self, x):
        return self.layer(torch.cat([x] * GROUPS, 1)) * torch.log(torch.tensor(3.0, device=x.device))


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.block = Block(width)

    def forward(self, x):
        return torch.relu(self.block(x))


def get_inputs():
    return [torch.randn(5, 8)]


def get_init_inputs():
    return [8]
"""


def test_a_class_may_use_another_that_stands_after_it() -> None:
    """All that the constructor reaches is kept, in the file's order."""
    problem = problem_of(LATER)
    graph = trace_problem(problem)
    source = emit(problem, graph, initial_schedule(graph)).source
    places = [source.index(text) for text in ("GROUPS = 2", "class Block", "class Mixed", "class ModelNew")]
    assert places == sorted(places)


def test_a_number_is_filled_on_the_device() -> None:
    """A number copied from the host would keep the forward from being captured as a CUDA graph."""
    problem = problem_of(LATER)
    graph = trace_problem(problem)
    source = emit(problem, graph, initial_schedule(graph)).source
    assert "torch.full((), 3.0" in source
    assert "torch.tensor(" not in source.split("class ModelNew")[1]


def test_a_returned_repetition_has_memory_of_its_own() -> None:
    """Of one element a reshaped expansion is a view, all of it in the same memory, which is no result."""
    problem, graph = traced_text(function("(x.exp().repeat_interleave(2, 0), x.sum(1))"))
    assert ".contiguous(), " in emit(problem, graph, initial_schedule(graph)).source
