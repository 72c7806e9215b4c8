"""What every role is told of a problem."""

from __future__ import annotations

from pathlib import Path

from agents.coder.llm import PROMPTS
from tools.problems import load_problem

SOURCE = """
import torch

ROWS = 64


def stored(cache, x):
    cache[0] = x
    return {}


def example_inputs():
    return torch.randn(4, ROWS), torch.randn(ROWS)
"""


def told(folder: Path, result: str) -> str:
    """Show the problem of a function that writes a row of its argument."""
    file = folder / "stored.py"
    file.write_text(SOURCE.format(result))
    return PROMPTS.render("problem", problem=load_problem(file))


def test_arguments_that_are_written_are_named(tmp_path: Path) -> None:
    """They are no results; the contract that inputs are left alone does not hold for them."""
    text = told(tmp_path, "x * 2")
    assert "Forward also writes to cache. `ModelNew` writes the same new contents there" in text
    assert "- output0: float32[64]" in text
    assert "written_cache" not in text


def test_nothing_is_said_where_nothing_is_written(tmp_path: Path) -> None:
    """Prompts of other problems are as they were: recorded answers belong to them word by word."""
    file = tmp_path / "plain.py"
    file.write_text(SOURCE.replace("    cache[0] = x\n", "").format("cache + x"))
    text = PROMPTS.render("problem", problem=load_problem(file))
    assert "writes to" not in text
    assert "- output0: float32[4, 64]\nDeclared precision" in text
