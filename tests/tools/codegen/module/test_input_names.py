"""Inputs may be called as anything that emitted code has a name for: a size, a pointer, a function, a module."""

from __future__ import annotations

import re
from pathlib import Path

from tests.tools.codegen.harness import problem_of, run_worker, trace_problem, write_job
from tools.codegen import emit
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet

SOURCE = """
M, N = 24, 40
SMALL_SIZES = [{"M": 8, "N": 16}]


def sample(x, w):
    h = (x * w).softmax(-1)
    return h.sum(0), h, x.mm(w.expand_as(x).t())


def example_inputs():
    import torch

    return torch.randn(M, N), torch.randn(N)
"""


def emitted(name: str) -> tuple[str, str]:
    """Name the first input so; give the reference and its first choice."""
    text = re.sub(r"\bx\b", name, SOURCE)
    problem = problem_of(text)
    graph = trace_problem(problem)
    return text, emit(problem, graph, modelled_choices(graph, load_sheet("h100"), problem.policy)[0].schedule).source


def run(folder: Path, names: list[str]) -> None:
    """Run what is emitted for each name."""
    jobs = []
    for name in names:
        text, source = emitted(name)
        jobs.append(write_job(folder, f"named_{name}", problem_of(text), source))
    for result in run_worker("interpreter_worker.py", jobs, interpret=True):
        assert "crash" not in result, result["crash"]
        assert result["error"] <= 1.0


def test_an_input_may_be_called_as_a_variable_of_a_kernel(tmp_path: Path) -> None:
    """Sizes and blocks of axes, masks and pointers have names that depend on the kernel: no input's takes theirs."""
    run(tmp_path, ["n_k0", "block_k0", "within_k0", "softmax_ptr", "sum_1_ptr", "given_0"])


def test_an_input_may_be_called_as_a_function_of_the_file(tmp_path: Path) -> None:
    """Host functions and kernels get other names than an input that would hide them."""
    _, source = emitted("x")
    functions = re.findall(r"^def (\w+)", source, re.MULTILINE)
    run(tmp_path, [name for name in functions if "softmax" in name])


def test_an_input_may_be_called_as_a_module(tmp_path: Path) -> None:
    """Where forward speaks of `torch`, its argument of that name is another one's in a method of its own."""
    _, source = emitted("torch")
    assert "def forward(self, torch: torch.Tensor, w: torch.Tensor):\n        return self.compute(torch, w)" in source
    run(tmp_path, ["torch", "triton", "F"])


def test_plain_names_stay() -> None:
    """An input that hides nothing keeps its name, in forward and in kernels, even where Python has a function of that name."""
    _, source = emitted("input")
    assert "input_ptr" in source
    assert "self.compute" not in source
