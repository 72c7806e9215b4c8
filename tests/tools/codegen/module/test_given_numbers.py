"""Numbers that come from sizes which none of a kernel's tensors has are given to its host function."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.harness import (
    generated,
    problem_of,
    run_worker,
    trace_problem,
    traced_at_all_sizes,
    traced_text,
    unseen,
    write_job,
)
from tests.tools.codegen.templates.test_memory_bound import SETTINGS
from tools.codegen import emit, initial_schedule, limits, options
from tools.codegen.ir.expr import LoweringError
from tools.hardware import load_sheet

HEADS = """import math
import torch
from torch import nn

BATCH = 2
STEPS = 12
DIM = 24


class Model(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.net = nn.Linear(dim, 2 * dim)
        self.heads = heads

    def forward(self, x):
        b, t, c = x.shape
        q, k = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.net(x).split(c, dim=2))
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        return torch.softmax(scores.masked_fill(scores < 0, float("-inf")), -1) @ k, torch.relu(x * (1.0 / k.size(-1)))


def get_inputs():
    return [torch.randn(BATCH, STEPS, DIM)]


def get_init_inputs():
    return [DIM, 4]
"""


@pytest.mark.slow
def test_a_given_number_follows_the_sizes(tmp_path: Path) -> None:
    """A scale by the width of a head is right at a width that no trace saw, in each way along a row."""
    problem, graph = traced_at_all_sizes(HEADS)
    other = unseen(HEADS.replace("STEPS = 12", "STEPS = 5").replace("DIM = 24", "DIM = 52"))
    ways = ("blocks", "shared", "whole")
    jobs = [write_job(tmp_path, way, other, emit(problem, graph, generated(graph, SETTINGS[way] | {"matmul": {}})).source) for way in ways]
    for result in run_worker("interpreter_worker.py", jobs, interpret=True):
        assert "crash" not in result, result["crash"]
        assert result["error"] <= 1.0


def test_a_scale_by_the_width_of_a_head_joins_what_follows_it() -> None:
    """Nothing is left to the library, the softmax's kernel is given the number, and the whole attention is one fusion away."""
    problem, graph = traced_at_all_sizes(HEADS)
    assert not limits(graph)
    assert ("mul", "lt", "masked_fill", "softmax") in {region.nodes for region in initial_schedule(graph).regions}
    assert "scalar_0: float) ->" in emit(problem, graph, generated(graph, SETTINGS["whole"] | {"matmul": {}})).source
    found = options(graph, initial_schedule(graph), load_sheet("h200"))
    assert any(action.region.count("+") == 2 and action.parameters.get("scope") == "together" for action in found)


CELLS = """import torch

POINTS = 300
CELLS = 40
SMALL_SIZES = [{"POINTS": 7, "CELLS": 5}, {"POINTS": 16, "CELLS": 6}]


def cell_sums(where, values):
    cell = (where * CELLS).long().clamp(0, CELLS - 1)
    return torch.zeros(CELLS, device=where.device, dtype=values.dtype).index_add_(0, cell, values)


def example_inputs():
    return torch.rand(POINTS), torch.rand(POINTS)
"""


def test_a_constant_that_no_shape_tells_is_kept(tmp_path: Path) -> None:
    """A table as long as a constant of the file is made by a kernel, at sizes that no trace saw with the constant as written."""
    problem = problem_of(CELLS)
    graph = trace_problem(problem)
    assert not limits(graph)
    source = emit(problem, graph, generated(graph, {})).source
    jobs = [write_job(tmp_path, str(points), unseen(CELLS.replace("POINTS = 300", f"POINTS = {points}")), source) for points in (300, 123)]
    for result in run_worker("interpreter_worker.py", jobs, interpret=True):
        assert "crash" not in result, result["crash"]
        assert result["error"] <= 1.0


SCALED = """import torch

ROWS = 6
COLS = 10
SMALL_SIZES = [{"ROWS": 3, "COLS": 5}, {"ROWS": 4, "COLS": 7}]


def scaled(x):
    rate = torch.linspace(0, 1, COLS, device=x.device, dtype=torch.float64) / (2 * x.shape[1])
    return x * rate.float()


def example_inputs():
    return (torch.rand(ROWS, COLS),)
"""


def test_a_number_made_of_sizes_is_one_operand() -> None:
    """A library call divides by the whole of a formula of sizes, not by its first part."""
    problem = problem_of(SCALED)
    graph = trace_problem(problem)
    assert "/ (x.shape[1] * 2)" in emit(problem, graph, initial_schedule(graph)).source


GROUPS = """import torch

TEAMS = 12
MEMBERS = 4
COLS = 20
SMALL_SIZES = [{"TEAMS": 3, "MEMBERS": 2, "COLS": 6}, {"TEAMS": 4, "MEMBERS": 2, "COLS": 8}]


def ranked(x):
    teams = x.view(-1, MEMBERS, x.shape[1])
    return (teams - teams.amax(1, keepdim=True)).sum(-1)


def example_inputs():
    return (torch.rand(TEAMS * MEMBERS, COLS),)
"""


def test_a_constant_of_the_makers_alone_is_told_by_shapes(tmp_path: Path) -> None:
    """How many groups there are follows from the rows and the size of a group, at numbers of rows that no trace saw."""
    problem = problem_of(GROUPS)
    graph = trace_problem(problem)
    assert graph.constants == ((4, 2, 2),)
    source = emit(problem, graph, generated(graph, {})).source
    jobs = [write_job(tmp_path, str(teams), unseen(GROUPS.replace("TEAMS = 12", f"TEAMS = {teams}")), source) for teams in (12, 31)]
    for result in run_worker("interpreter_worker.py", jobs, interpret=True):
        assert "crash" not in result, result["crash"]
        assert result["error"] <= 1.0


UNTOLD = """import torch

A, B = 4, 64
SMALL_SIZES = [{"A": 3, "B": 5}, {"A": 7, "B": 8}, {"A": 2, "B": 9}]


def untold(x):
    a, b = x.shape
    high = (a * a + b) % 5 + 2
    return torch.nn.functional.fold(x[:1, :1, None].expand(1, 1, high), (high, 1), (1, 1))


def example_inputs():
    return (torch.randn(A, B),)
"""


def test_a_number_that_nothing_tells_is_named() -> None:
    """What it was in the traces is said: whoever wrote the file knows it by that."""
    problem = problem_of(UNTOLD)
    graph = trace_problem(problem)
    with pytest.raises(LoweringError, match=r"a number varies with the sizes \(2, 6, .*\) and cannot be told"):
        emit(problem, graph, initial_schedule(graph))


PAIRS = """import torch

ROWS = 64
FIELDS = 13
SMALL_SIZES = [{"FIELDS": 4}, {"ROWS": 3, "FIELDS": 5}]


def pairs(x):
    n = x.shape[1]
    left = torch.tensor([i for i in range(n) for j in range(i)], device=x.device)
    right = torch.tensor([j for i in range(n) for j in range(i)], device=x.device)
    return (x[:, left] * x[:, right]).relu()


def example_inputs():
    return (torch.randn(ROWS, FIELDS),)
"""


def test_a_table_that_a_size_makes_is_chosen_by_that_size(tmp_path: Path) -> None:
    """The pairs of fields are those of their number, for any number of rows; of fields that nobody has named there is no table."""
    problem, graph = traced_text(PAIRS, "pairs")
    source = emit(problem, graph, generated(graph, {})).source
    assert source.count("}[x.shape[1]]") == 2
    known, other = (PAIRS.replace("ROWS = 64", "ROWS = 9").replace("FIELDS = 13", f"FIELDS = {fields}") for fields in (5, 6))
    jobs = [write_job(tmp_path, name, unseen(text), source) for name, text in (("known", known), ("other", other))]
    right, refused = run_worker("interpreter_worker.py", jobs, interpret=True)
    assert right["error"] <= 1.0
    assert "KeyError: 6" in refused["crash"]
