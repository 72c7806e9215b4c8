"""Emitted kernels with their guards, used as they were not made for."""

from __future__ import annotations

from tests.tools.codegen.harness import generated, problem_of, run_worker, trace_problem
from tools.codegen import emit

GATED = """import torch
import torch.nn.functional as F

ROWS = 6
COLS = 10
SMALL_SIZES = [{"ROWS": 3, "COLS": 7}]


def sample(x, w):
    gate, up = x.chunk(2, dim=-1)
    return torch.softmax(F.silu(gate) * up * w, 1)


def example_inputs():
    return (torch.randn(ROWS, 2 * COLS), torch.randn(COLS))
"""


def test_no_wrong_use_of_an_emitted_kernel_is_silently_wrong() -> None:
    """Thirty uses: errors, or the reference's result where layouts are unusual; halves of a transposed input were once read wrongly."""
    problem = problem_of(GATED, "gated")
    graph = trace_problem(problem)
    source = emit(problem, graph, generated(graph, {})).source
    [found] = run_worker("misuse_worker.py", [{"problem": problem.model_dump_json(), "source": source}], interpret=True)
    ends = found["ends"]
    assert len(ends) > 30
    assert set(ends.values()) == {"refused", "right"}
    assert {ends[f"argument 0: {name}"] for name in ("not contiguous", "every second element", "off by one element")} == {"right"}
    assert {ends[f"argument 0: {name}"] for name in ("another rank", "one less at the end", "empty", "a gradient")} == {"refused"}
