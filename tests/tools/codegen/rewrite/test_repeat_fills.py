"""Assignments to a whole tensor, and to parts of one."""

from __future__ import annotations

from pathlib import Path

from tests.tools.codegen.harness import problem_of, run_worker, trace_problem, write_job
from tools.codegen import emit
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet

SOURCE = """
import torch

ROWS, WIDTH = 64, 96
SMALL_SIZES = [{"ROWS": 7, "WIDTH": 37}, {"ROWS": 2, "WIDTH": 11}]


def assigned(x, y):
    mask = torch.ones(x.shape, device=x.device)
    mask[:, : x.shape[1] // 3] = 0
    mask[:, -1] = y[:, 0]
    moved = torch.empty_like(x)
    moved[:, 1:] = x[:, :-1]
    moved[:, 0] = y.half()[:, 1]
    twice = x * 2
    twice[:, 2:5].zero_()
    twice[:, 7:9] = y[:, :1] + 1
    return mask, moved + twice


def example_inputs():
    return torch.rand(ROWS, WIDTH), torch.rand(ROWS, 2)
"""


def test_assigned_numbers_and_values_take_the_place_of_what_was_there(tmp_path: Path) -> None:
    """A number, a value that is spread and one of another dtype are written into parts of tensors by one region of our own."""
    problem = problem_of(SOURCE, "assigned")
    graph = trace_problem(problem)
    assert not {node.op for node in graph.nodes} & {"fill", "copy", "zero"}
    schedule = modelled_choices(graph, load_sheet("h100"), problem.policy)[0].schedule
    assert all(region.is_generated for region in schedule.regions)
    (found,) = run_worker(
        "interpreter_worker.py", [write_job(tmp_path, "assigned", problem, emit(problem, graph, schedule).source)], interpret=True
    )
    assert "crash" not in found, found["crash"]
    assert found["error"] <= 1.0
