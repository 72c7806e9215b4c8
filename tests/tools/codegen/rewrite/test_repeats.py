"""Repetitions by numbers that vary with the sizes."""

from __future__ import annotations

from pathlib import Path

from tests.tools.codegen.harness import generated, run_worker, traced_text, write_job
from tools.codegen import emit
from tools.codegen.ir.schedule import Region, Schedule
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.plan import plan_region

SOURCE = """
import torch

BATCH, HEADS, SHARED, TOKENS, DIM = 2, 8, 2, 40, 16
SMALL_SIZES = [
    {"BATCH": 1, "HEADS": 6, "SHARED": 2, "TOKENS": 11, "DIM": 5},
    {"BATCH": 2, "HEADS": 2, "SHARED": 1, "TOKENS": 16, "DIM": 16},
]


def attended(q, k, v):
    times = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(times, dim=1), v.repeat_interleave(times, dim=1)
    return torch.softmax(q @ k.transpose(-2, -1) * 0.3, -1) @ v


def example_inputs():
    shared = [torch.randn(BATCH, SHARED, TOKENS, DIM) for _ in range(2)]
    return torch.randn(BATCH, HEADS, TOKENS, DIM), *shared
"""
PAIRS = """
import torch

ROWS, OTHERS, DIM = 40, 24, 16
SMALL_SIZES = [{"ROWS": 7, "OTHERS": 5, "DIM": 3}, {"ROWS": 2, "OTHERS": 4, "DIM": 16}]


def paired(x, y):
    return torch.relu(x.repeat_interleave(y.shape[0], dim=0) - y.repeat(x.shape[0], 1)).sum(1)


def example_inputs():
    return torch.randn(ROWS, DIM), torch.randn(OTHERS, DIM)
"""


def test_heads_that_are_repeated_as_often_as_sizes_say_are_read_where_they_lie(tmp_path: Path) -> None:
    """An attention with heads of keys that several heads of queries share is one kernel, and no repeated keys are written."""
    problem, graph = traced_text(SOURCE, "attended")
    assert not any(node.op == "repeat_interleave" for node in graph.nodes)
    nodes = tuple(node.name for node in graph.nodes if not is_view(node))
    planned = plan_region(graph, nodes)
    assert planned.template.name == "attention"
    schedule = Schedule(regions=(Region(id="r0", nodes=nodes, template="attention", parameters=planned.defaults(132)),))
    job = write_job(tmp_path, "attended", problem, emit(problem, graph, schedule).source)
    result = run_worker("interpreter_worker.py", [job], interpret=True)[0]
    assert "crash" not in result, result["crash"]
    assert result["error"] <= 1.0


def test_pairs_of_all_rows_are_one_kernel(tmp_path: Path) -> None:
    """Of two tensors one of which is interleaved and the other repeated, neither is written."""
    problem, graph = traced_text(PAIRS, "paired")
    schedule = generated(graph, {})
    assert [region.is_generated for region in schedule.regions] == [True]
    job = write_job(tmp_path, "paired", problem, emit(problem, graph, schedule).source)
    assert run_worker("interpreter_worker.py", [job], interpret=True)[0]["error"] <= 1.0
