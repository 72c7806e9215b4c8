"""Remainders of remainders by a size that varies."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.harness import run_worker, traced_at_all_sizes, write_job
from tests.tools.codegen.samples import function
from tools.codegen import emit, initial_schedule, limits
from tools.codegen.lower.rules import lower_general
from tools.codegen.schedule.apply import apply
from tools.codegen.schedule.options import options
from tools.codegen.templates.shared.work import emitted
from tools.hardware import load_sheet

ROLLS = {
    "x.roll(1, 1).roll(-1, 1)": 0,
    "x.roll(-1, 1).roll(-1, 1)": 1,
    "x.roll(1, 1).roll(2, 1)": 1,
}
BEYOND = (
    "x.roll(7, 1) - x.roll(-9, 0)",
    "x.roll((-11, 4), (1, 0)).roll(6, 1)",
    "x.roll(3)",
    "x[:, 0].roll(-1) * x.roll((5, 2), (0, 1))[:, 1]",
)
"""Rolls by more than there are elements, and of a tensor as one row."""
SIZES = '\nSMALL_SIZES = [{"ROWS": 2, "COLS": 5}, {"ROWS": 3, "COLS": 8}]\n'


@pytest.mark.parametrize(("body", "remainders"), ROLLS.items())
def test_a_roll_of_a_roll_is_one_roll(body: str, remainders: int) -> None:
    """Positions go round once, whatever the length is; there and back is where they were."""
    _, graph = traced_at_all_sizes(function(body) + SIZES)
    kernel = lower_general(graph, [node.name for node in graph.nodes])
    assert sum(kernel.builder.exprs[place].op == "mod" for place in emitted(kernel)) == remainders


@pytest.mark.slow
def test_rolls_of_rolls_are_right(tmp_path: Path) -> None:
    """On Triton's interpreter, with three steps back, and by more than there are elements, too."""
    jobs = []
    for place, body in enumerate(
        (*ROLLS, *BEYOND, "x - x.roll(1, 1).roll(1, 1).roll(-1, 1)", "x.roll(3, 1).roll(2, 1).roll(4, 1).roll(-1, 1)")
    ):
        problem, graph = traced_at_all_sizes(function(body) + SIZES)
        assert not limits(graph)
        start = initial_schedule(graph)
        generated = apply(graph, start, options(graph, start, load_sheet("h200"))[0])
        jobs.append(write_job(tmp_path, f"rolls{place}", problem, emit(problem, graph, generated).source))
    for result in run_worker("interpreter_worker.py", jobs, interpret=True):
        assert result.get("error", 9.0) <= 1.0, result
