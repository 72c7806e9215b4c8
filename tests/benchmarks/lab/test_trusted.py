"""What benchmarks do with sources of our own coder, without walls."""

from __future__ import annotations

from pathlib import Path

import torch

from benchmarks.lab import compiling
from benchmarks.lab.compiling import Made
from benchmarks.lab.process import HelperPool, end_all
from benchmarks.lab.trusted import load_source, make_model
from tools.codegen import emit, initial_schedule, trace
from tools.problems import load_problem, open_problem
from tools.records import Problem

LINEAR = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(8, 4)

    def forward(self, x):
        return torch.tanh(self.inner(x))


def get_inputs():
    return [torch.randn(16, 8)]


def get_init_inputs():
    return []
"""


def written(folder: Path, *, captured: bool) -> tuple[Problem, str]:
    """The problem, and a source that leaves all of it to the library."""
    file = folder / "linear.py"
    file.write_text(LINEAR)
    problem = load_problem(file)
    graph = trace(problem)
    schedule = initial_schedule(graph).model_copy(update={"captured": captured})
    return problem, emit(problem, graph, schedule).source


def test_a_model_has_the_references_weights_and_draws_none(tmp_path: Path) -> None:
    """Its own are never drawn, so the generator stays where it was; afterwards weights are drawn as ever."""
    problem, source = written(tmp_path, captured=False)
    reference = open_problem(problem)
    module = load_source(source, tmp_path)
    before = torch.get_rng_state()
    model = make_model(module, problem, reference, "cpu")
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(model.inner.weight, reference.module.inner.weight)
    assert torch.nn.Linear(8, 4).weight.std() > 0


def test_a_captured_forward_compiles_without_a_device(tmp_path: Path) -> None:
    """Capturing needs a device, which is no fault of the source: its launches are then unknown."""
    problem, source = written(tmp_path, captured=True)
    assert "torch.cuda.graph" in source
    # which takes the place of the device in all of its process
    pool = HelperPool(1, compiling.serve, ("h200",), {"CUDA_VISIBLE_DEVICES": ""})
    with pool.borrowed() as compiler:
        made = compiler.ask((problem.model_dump_json(), source, str(tmp_path / "scratch")), 120.0)
    end_all([pool])
    assert made == Made(launches=(), kernels=())
