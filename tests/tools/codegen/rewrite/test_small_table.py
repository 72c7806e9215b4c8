"""A lookup in a table of a few given numbers is a choice that any kernel can make."""

from __future__ import annotations

from pathlib import Path

from tests.tools.codegen.harness import generated, problem_of, run_worker, trace_problem, write_job
from tools.codegen import emit, initial_schedule, limits
from tools.codegen.schedule.plan import can_generate

LINEAR = """import torch

TOKENS, IN, OUT = 8, 64, 24
SMALL_SIZES = [{"TOKENS": 5, "IN": 64, "OUT": 12}]


def coded_linear(x, codes, scales):
    table = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0], dtype=x.dtype)
    weight = torch.stack([table[(codes & 15).long()], table[(codes >> 4).long()]], -1).flatten(-2)
    weight = torch.ldexp(weight, scales.int().unsqueeze(-1) - 127).flatten(-2)
    return torch.nn.functional.linear(x, weight.to(x.dtype))


def example_inputs():
    codes = torch.randint(0, 256, (OUT, IN // 32, 16), dtype=torch.uint8)
    return torch.randn(TOKENS, IN), codes, torch.randint(120, 130, (OUT, IN // 32), dtype=torch.uint8)
"""
PICKED = """import torch

ROWS = 6
COLS = 37


def picked(codes):
    table = torch.tensor([0.25, -1.5, 3.0, 7.0, 11.0], dtype=torch.float32)
    return table[codes] + 1.0


def example_inputs():
    return (torch.randint(-5, 5, (ROWS, COLS)),)
"""


def test_codes_are_looked_up_in_the_loop_of_a_product() -> None:
    """A linear layer whose weights are codes of four bits with powers of two is one product, and nothing of it takes float64 powers."""
    problem = problem_of(LINEAR)
    graph = trace_problem(problem)
    assert not limits(graph)
    assert can_generate(graph, [name for region in initial_schedule(graph).regions for name in region.nodes])
    assert "power(" not in emit(problem, graph, generated(graph, {})).source


def test_choices_are_right(tmp_path: Path) -> None:
    """Also of negative codes, which count from the end of a table whose length is no power of two; the library's call says the same."""
    jobs = []
    for text in (LINEAR, PICKED):
        problem = problem_of(text)
        graph = trace_problem(problem)
        for name, schedule in (("ours", generated(graph, {})), ("library", initial_schedule(graph))):
            jobs.append(write_job(tmp_path, f"{problem.name}-{name}-{len(jobs)}", problem, emit(problem, graph, schedule).source))
    for result in run_worker("interpreter_worker.py", jobs, interpret=True):
        assert "crash" not in result, result["crash"]
        assert result["error"] <= 1.0
