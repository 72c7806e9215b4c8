"""The process that times a reference: eager first, then torch.compile, its launches in turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.lab.device_lock import DeviceLock
from benchmarks.lab.reference import ReferenceTimer
from benchmarks.lab.truth import plan_calls
from tools.problems import load_problem

PRODUCT = """
import torch


def product(x, y):
    return x @ y


def example_inputs():
    return torch.randn(12, 70), torch.randn(70, 9)
"""
"""Compiled without a compiler of C++: it is one call of a library."""


def timer(folder: Path) -> ReferenceTimer:
    """One that compiles for the CPU."""
    return ReferenceTimer("cpu", "h200", DeviceLock(folder / "lock", hold_s=0), compiles=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_eager_comes_first_and_the_compiled_one_after(tmp_path: Path) -> None:
    """Both are timed, and the lock is free in the end."""
    file = tmp_path / "product.py"
    file.write_text(PRODUCT)
    problem = load_problem(file)
    lock = DeviceLock(tmp_path / "lock", hold_s=0)
    answers = timer(tmp_path).times(problem, plan_calls(problem)[0])
    eager = next(answers)
    with lock.taken():
        assert all(time > 0 for time in eager)
    compiled = next(answers)
    assert isinstance(compiled, tuple), compiled
    assert len(compiled) >= 5
    assert list(answers) == []
