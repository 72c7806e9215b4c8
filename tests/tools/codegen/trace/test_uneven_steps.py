"""Loops whose steps take and write other parts, by their position: every step is written out, as many as the problem has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tools.codegen.harness import generated, problem_of, run_worker, traced_text, unseen, write_job
from tools.codegen import emit, trace
from tools.problems import small_variants

SHIFTS = """import torch

BATCH = 2
HEIGHT = 3
WIDTH = 40
SHIFTS = 10
SMALL_SIZES = [{"BATCH": 2, "WIDTH": 6, "SHIFTS": 4}, {"BATCH": 1, "WIDTH": 9, "SHIFTS": 3}]


class Model(torch.nn.Module):
    def __init__(self, shifts):
        super().__init__()
        self.shifts = shifts

    def forward(self, left, right):
        width = left.shape[-1]
        out = left.new_zeros(left.shape[0], self.shifts, left.shape[1], width)
        for d in range(self.shifts):
            out[:, d, :, d:] = left[..., d:] * right[..., : width - d]
        return out.mean(1), out


def get_inputs():
    return [torch.randn(BATCH, HEIGHT, WIDTH), torch.randn(BATCH, HEIGHT, WIDTH)]


def get_init_inputs():
    return [SHIFTS]
"""
CAUSAL = """import torch

ROWS = 6
LENGTH = 12
SMALL_SIZES = [{"ROWS": 2, "LENGTH": 5}, {"ROWS": 1, "LENGTH": 8}]


def peaks(x):
    out = torch.empty_like(x)
    for t in range(x.shape[1]):
        out[:, t] = x[:, : t + 1].amax(1) * x[:, t]
    return out


def example_inputs():
    return (torch.randn(ROWS, LENGTH),)
"""
WIDTHS = (10, 11, 23, 9, 2, 1)
"""Among them some at which the last shifts leave nothing."""


@pytest.mark.parametrize(
    ("source", "sizes"),
    [(SHIFTS, [{"BATCH": 2, "WIDTH": 12}, {"BATCH": 1, "WIDTH": 9}]), (CAUSAL, [{"ROWS": 2}, {"ROWS": 1}])],
    ids=["parts that are written", "parts that are read"],
)
def test_steps_that_differ_stay_as_many_as_written(source: str, sizes: list[dict[str, int]]) -> None:
    """Declared sizes with fewer of them lose that; where ten shifts find no room in a width, it is wider by as many as there are more."""
    assert [variant.sizes for variant in small_variants(problem_of(source))] == sizes
    assert not trace(problem_of(source)).blocked


def test_steps_too_many_to_be_written_out_are_named() -> None:
    """What no kernel is made for is said in one line: which constant counts the steps, and what of them differs."""
    said = trace(problem_of(SHIFTS.replace("SHIFTS = 10", "SHIFTS = 310").replace("WIDTH = 40", "WIDTH = 400"))).blocked
    assert said == ("the steps of its loop, SHIFTS of them, are not alike: aten.slice.Tensor gives another shape at each step",)


COLUMNS = """import torch

ROWS = 9
COLUMNS = 10
SMALL_SIZES = [{"ROWS": 5, "COLUMNS": 3}, {"ROWS": 8, "COLUMNS": 5}]


class Model(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.tables = torch.nn.ParameterDict({f"column_{at}": torch.nn.Parameter(torch.randn(7)) for at in range(columns)})

    def forward(self, x, codes):
        found = [x[:, at] * table[codes[:, at]] for at, table in enumerate(self.tables.values())]
        return torch.stack(found, 1).exp().sum(1)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS), torch.randint(0, 7, (ROWS, COLUMNS))]


def get_init_inputs():
    return [COLUMNS]
"""


def test_a_table_for_each_column_is_written_out(tmp_path: Path) -> None:
    """Steps that read a parameter each are as many as the problem has; the kernels are right at other rows."""
    problem, graph = traced_text(COLUMNS, "columns")
    assert not graph.blocked
    source = emit(problem, graph, generated(graph, {})).source
    jobs = [write_job(tmp_path, f"rows_{rows}", unseen(COLUMNS.replace("ROWS = 9", f"ROWS = {rows}")), source) for rows in (9, 23)]
    results = run_worker("interpreter_worker.py", jobs, interpret=True)
    assert [result for result in results if result.get("error", 2) > 1] == []


def test_steps_that_differ_are_right_at_every_width(tmp_path: Path) -> None:
    """Where a shift leaves nothing, nothing is written."""
    problem, graph = traced_text(SHIFTS, "shifts")
    source = emit(problem, graph, generated(graph, {})).source
    texts = [re.sub(r"WIDTH = 40", f"WIDTH = {width}", SHIFTS) for width in WIDTHS]
    jobs = [write_job(tmp_path, f"shifts_{width}", unseen(text), source) for width, text in zip(WIDTHS, texts, strict=True)]
    results = run_worker("interpreter_worker.py", jobs, interpret=True)
    assert [result for result in results if result.get("error", 2) > 1] == []
