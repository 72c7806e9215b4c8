"""A suite's problems with batch norm in eval mode."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.kernelbench.eval_suite import in_eval_mode
from tests.tools.codegen.compute_samples import module
from tools.errors import UserError
from tools.problems import load_problem

NORMED = module("self.norm = torch.nn.BatchNorm1d(c); self.scale = 2.0", "return self.norm(x) * self.scale", "torch.randn(4, 8)")


def test_the_copy_is_the_problem_in_eval_mode(tmp_path: Path) -> None:
    """The copy loads as a problem in eval mode, its parameters are those of the original, and every line of that is in it."""
    (tmp_path / "normed.py").write_text(NORMED)
    (tmp_path / "copy.py").write_text(in_eval_mode(NORMED))
    original, copy = load_problem(tmp_path / "normed.py"), load_problem(tmp_path / "copy.py")
    assert original.abi.training
    assert not copy.abi.training
    assert copy.abi.parameters == original.abi.parameters
    assert [line for line in in_eval_mode(NORMED).split("\n") if line.strip() != "self.eval()"] == NORMED.split("\n")


def test_a_file_without_a_module_is_refused() -> None:
    """What has no constructor of a Model is named as such."""
    with pytest.raises(UserError, match="no constructor of a Model"):
        in_eval_mode("def double(x):\n    return x * 2\n")
