"""Kernel files joined into one that dispatches by size: run as they are, with plain PyTorch in the place of kernels."""

import ast
from typing import Any

import pytest
import torch

from tests.support.makers import problem
from tools.codegen.joined import UnjoinableError, joined
from tools.records import Problem, ProblemShape, TensorSpec

FILE = '''"""A file."""

import torch
from torch import nn

BLOCK = {block}


def scaled(x, BLOCK=BLOCK):
    return x * BLOCK


class ModelNew(nn.Module):
    """The module."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        {more}

    def forward(self, x):
        return scaled(x, BLOCK=BLOCK) * self.weight
'''


def given() -> Problem:
    """A problem with a weight."""
    one = problem([(64, 4)])
    weight = TensorSpec(name="weight", shape=(4,), dtype="float32", dynamic=False)
    return one.model_copy(update={"abi": one.abi.model_copy(update={"parameters": (weight,)})})


def at(rows: int) -> ProblemShape:
    """A shape of so many rows."""
    one = problem([(rows, 4)])
    return ProblemShape(name=str(rows), sizes={"rows": rows}, abi=one.abi, work=one.work)


def ran(text: str, rows: int) -> float:
    """By what number the joined file multiplies."""
    names: dict[str, Any] = {}
    exec(compile(text, "joined", "exec"), names)
    with torch.no_grad():
        return float(names["ModelNew"]()(torch.ones(rows, 4))[0, 0])


def source(block: int, more: str = "pass") -> str:
    """A file that multiplies by `block`."""
    return FILE.format(block=block, more=more)


def test_each_size_is_served_by_its_own_file() -> None:
    """The bound lies between the sizes, at their geometric mean, and a file that is best at both ends is written once."""
    text = joined(given(), [(at(1), source(2)), (at(64), source(3)), (at(1024), source(2))])
    assert [ran(text, rows) for rows in (1, 7, 9, 64, 255, 257, 4096)] == [2.0, 2.0, 3.0, 3.0, 3.0, 2.0, 2.0]
    assert text.count("class ModelNewAt") == 2


def test_what_a_file_defines_stays_its_own_and_imports_stand_once() -> None:
    """Functions and constants of equal names do not get into each other's way; names of arguments stay."""
    text = joined(given(), [(at(1), source(2)), (at(64), source(3))])
    assert "def scaled_at1(x, BLOCK_at1=BLOCK_at1)" in text or "def scaled_at1(x, BLOCK=BLOCK_at1)" in text
    assert sum(isinstance(node, ast.Import) for node in ast.parse(text).body) == 1


def test_a_module_that_keeps_something_for_itself_is_not_joined() -> None:
    """Its forward would be called with a module that does not have it."""
    with pytest.raises(UnjoinableError, match="keeps packed"):
        joined(given(), [(at(1), source(2)), (at(64), source(3, "self.packed = 1"))])


def test_shapes_of_equal_size_are_not_told_apart() -> None:
    """Where two files would serve them."""
    with pytest.raises(UnjoinableError, match="tells the shapes apart"):
        joined(given(), [(at(4), source(2)), (at(4), source(3))])
