"""References that pick rows by a condition are read without contents, as if the rows were spread evenly."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.dispatch_samples import PLAIN
from tools.errors import UserError
from tools.problems import load_problem

LARGE = PLAIN.replace("TOKENS = 11", "TOKENS = 10000").replace("HIDDEN = 20", "HIDDEN = 4096").replace("INNER = 24", "INNER = 16384")
"""So large that a run with contents would take minutes."""


def test_experts_are_counted_without_a_run(tmp_path: Path) -> None:
    """Products of all rows together are counted once, however large the reference is."""
    path = tmp_path / "experts.py"
    path.write_text(LARGE.split("SMALL_SIZES", maxsplit=1)[0] + LARGE[LARGE.index("def get_inputs") :])
    problem = load_problem(path)
    routing = 2 * 10000 * 4096 * 5
    assert problem.work.matmul_flops == routing + 2 * 3 * 2 * 10000 * 4096 * 16384


def test_as_many_results_as_rows_are_still_refused(tmp_path: Path) -> None:
    """A result with a row for each that was picked depends on contents."""
    path = tmp_path / "picked.py"
    path.write_text("import torch\n\n\ndef picked(x):\n    return x[x > 0]\n\n\ndef example_inputs():\n    return (torch.randn(40, 30),)\n")
    with pytest.raises(UserError, match="depends on the contents"):
        load_problem(path)


def test_inputs_that_are_picked_keep_their_shape(tmp_path: Path) -> None:
    """Only what the reference itself picks is spread: a list of neighbours without oneself has as many as there are."""
    path = tmp_path / "neighbours.py"
    body = "def near(x, i):\n    y = x.clone()\n    y[x > 0] = 0.0\n    return y[i].sum(-1)\n"
    given = "    steps = torch.arange(-2, 3)\n    return torch.randn(40), (torch.arange(40)[:, None] + steps[steps != 0]) % 40\n"
    path.write_text(f"import torch\n\n\n{body}\n\ndef example_inputs():\n{given}")
    assert [spec.shape for spec in load_problem(path).abi.inputs] == [(40,), (40, 4)]
