"""What the emitted module keeps of the reference's file is all that its constructor needs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tools.codegen.harness import problem_of, trace_problem
from tools.codegen import emit, initial_schedule
from tools.codegen.module.reference_text import keep

REFERENCE = """import functools
import torch
from dataclasses import dataclass, field
from torch import nn

ROWS = 4
SMALL_SIZES = [{{"ROWS": 2}}, {{"ROWS": 3}}]
WIDTHS = {{"narrow": 3}}

{statements}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = {value}

    def forward(self, x):
        return x * self.scale


def get_inputs():
    return [torch.randn(ROWS, 3)]


def get_init_inputs():
    return []


if __name__ == "__main__":
    WIDTHS.clear()
"""
DECORATED = """@dataclass(frozen=True)
class Config:
    width: int = 3
    scales: list = field(default_factory=lambda: [2.0, 3.0])


@functools.lru_cache
def best(wide=False):
    return max(Config().scales)
"""
LATER = """@dataclass
class Pair:
    one: Scale | None = None

    def other(self) -> Scale:
        return Scale()


@dataclass
class Scale:
    size: float = 3.0
"""
TABLES = [
    ("WIDTHS['wide'] = 7", "WIDTHS['wide']", 7),
    ("for step in range(3):\n    WIDTHS[str(step)] = step", "WIDTHS['2']", 2),
    ("WIDTHS.update(wide=9)", "WIDTHS['wide']", 9),
    ("LEVELS = 4\nLEVELS *= 2", "LEVELS", 8),
    ("try:\n    LEVELS = WIDTHS['none']\nexcept KeyError:\n    LEVELS = 6", "LEVELS", 6),
    ("if len(WIDTHS) == 1:\n    LEVELS = 5\nelse:\n    LEVELS = 1", "LEVELS", 5),
    ("(LEVELS, *_), OTHER = (3, 4, 5), 6", "LEVELS + OTHER", 9),
]


def kept_names(statements: str, value: str) -> dict[str, Any]:
    """Run what is kept of a reference's file."""
    kept = keep(problem_of(REFERENCE.format(statements=statements, value=value)))
    names: dict[str, Any] = {}
    exec("\n".join([*kept.imports, kept.module]), names)
    return names


def test_decorators_of_helpers_are_kept() -> None:
    """A dataclass that the constructor makes, and a helper that is remembered, are what they were."""
    names = kept_names(DECORATED, "best() * Config(width=4).width")
    assert names["Config"](width=4).width == 4
    assert names["best"]() == 3.0
    assert names["best"].cache_info().misses == 1


@pytest.mark.parametrize(("statements", "value", "expected"), TABLES)
def test_what_changes_a_constant_is_kept(statements: str, value: str, expected: int) -> None:
    """A table that statements of the file fill, or a number that they change, is what the reference has."""
    assert eval(value, kept_names(statements, value)) == expected


def test_annotations_that_name_later_classes_are_read_as_the_file_reads_them() -> None:
    """Where the file puts off the reading of annotations, so does the module, in which they are read before all else."""
    problem = problem_of("from __future__ import annotations\n" + REFERENCE.format(statements=LATER, value="Pair().other().size"))
    graph = trace_problem(problem)
    names: dict[str, Any] = {}
    # a string of this file is not read as this file is
    exec(compile(emit(problem, graph, initial_schedule(graph)).source, "emitted", "exec", dont_inherit=True), names)
    assert names["ModelNew"]().scale == names["Pair"]().other().size == 3.0


def test_statements_for_the_whole_process_are_left() -> None:
    """What is said to PyTorch, or done where the file is the program, is no part of the module."""
    kept = keep(problem_of(REFERENCE.format(statements="torch.manual_seed(3)", value="WIDTHS['narrow']")))
    assert kept.module == 'WIDTHS = {"narrow": 3}'
