"""Files as users write them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tools.problems import load_problem
from tools.records import Problem

HEADER = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a source, with torch imported, to a file and return its path."""

    def _write(body: str, name: str = "problem.py", header: str = HEADER) -> Path:
        path = tmp_path / name
        path.write_text(header + body)
        return path

    return _write


@pytest.fixture
def load(write: Callable[..., Path]) -> Callable[..., Problem]:
    """Write a source and load it as a problem."""

    def _load(body: str, name: str = "problem.py", entry: str | None = None) -> Problem:
        return load_problem(write(body, name), entry=entry)

    return _load


@pytest.fixture
def softmax(load: Callable[..., Problem]) -> Problem:
    """A small problem in function form."""
    function = "def f(x):\n    return torch.softmax(x, -1)\n\n"
    return load(f"ROWS = 64\nCOLUMNS = 96\n\n{function}def example_inputs():\n    return (torch.randn(ROWS, COLUMNS),)\n")
