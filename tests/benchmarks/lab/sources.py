"""A small problem and sources for it: the lab's tests share them."""

from __future__ import annotations

from pathlib import Path

from tools.codegen import emit, initial_schedule, trace
from tools.codegen.schedule.apply import apply
from tools.codegen.schedule.options import options
from tools.hardware import load_sheet
from tools.problems import load_problem
from tools.records import Problem

REFERENCE = """
import torch


def rows_sum(x):
    return x.sum(-1)


def example_inputs():
    return (torch.randn(12, 70),)
"""
END = "        return sum_1"
"""The last line of `kernel_for`'s forward call."""


def small_problem(folder: Path) -> Problem:
    """A sum along rows."""
    file = folder / "rows_sum.py"
    file.write_text(REFERENCE)
    return load_problem(file)


def kernel_for(problem: Problem) -> str:
    """The coder's first kernel for it."""
    graph = trace(problem)
    start = initial_schedule(graph)
    generate = next(a for a in options(graph, start, load_sheet("h200")) if a.parameters.get("implementation") == "generated")
    return emit(problem, graph, apply(graph, start, generate)).source


def doing(source: str, line: str) -> str:
    """Have it do something when it is really called: compiling calls it on tensors without contents."""
    return source.replace(END, f"        if type(x).__name__ == 'Tensor':\n            {line}\n{END}")
