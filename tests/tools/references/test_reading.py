"""A file is read in a process of its own, and what was made of it there is known here."""

from __future__ import annotations

from pathlib import Path

from tools.problems.mixed_sizes import MIXED
from tools.records import DEFAULT_POLICY
from tools.references.reading import read_problem

DECLARED = """
import torch

ROWS, WIDTH = 4, 256
SMALL_SIZES = [{"ROWS": 2, "WIDTH": 12}, {"ROWS": 4, "WIDTH": 32}]


def doubled(x):
    return x * 2


def example_inputs():
    return (torch.rand(ROWS, WIDTH),)
"""


def test_mixtures_of_declared_sizes_come_with_a_problem(tmp_path: Path) -> None:
    """Whoever writes a guard, or asks for a trace, does not run the reference to have them."""
    path = tmp_path / "doubled.py"
    path.write_text(DECLARED)
    read = read_problem(path, DEFAULT_POLICY)
    assert [variant.sizes for variant in MIXED.of(read.problem) or ()] == [{"ROWS": 2, "WIDTH": 32}]
    assert len(read.variants) == 2
