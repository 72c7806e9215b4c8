"""How wrong an output may be, on the inputs it was made from."""

from __future__ import annotations

import pytest
import torch

from tools.evaluation.trusted.distributions import BATTERY
from tools.evaluation.trusted.numerics import ROUNDOFF
from tools.evaluation.trusted.rounding import rounded
from tools.evaluation.trusted.tolerance import Tolerance, error_of
from tools.problems import load_problem

SUM = """
import torch


def rows_sum(x):
    return x.sum(-1)


def example_inputs():
    return (torch.randn(16, 1 << 17),)
"""


@pytest.fixture(scope="module")
def tolerance(tmp_path_factory: pytest.TempPathFactory) -> Tolerance:
    """The tolerance of a long sum."""
    file = tmp_path_factory.mktemp("sum") / "sum.py"
    file.write_text(SUM)
    return Tolerance(load_problem(file), {}, "cpu")


def test_no_order_of_additions_is_wrong(tolerance: Tolerance) -> None:
    """On sorted rows the partial sums outgrow the result; adding them one after the other is still right."""
    x = BATTERY["sorted rows"](torch.randn(16, 1 << 17))
    total = torch.zeros(16)
    for part in x.view(16, 64, -1).sum(-1).unbind(1):
        total = total + part

    assert _is_right(tolerance, x, total)


def test_a_short_format_is_wrong_in_any_order(tolerance: Tolerance) -> None:
    """On the same rows a sum of TF32 numbers is wrong."""
    x = BATTERY["sorted rows"](torch.randn(16, 1 << 17))

    assert not _is_right(tolerance, x, rounded(x, ROUNDOFF["tf32"]).sum(-1))


def _is_right(tolerance: Tolerance, x: torch.Tensor, found: torch.Tensor) -> bool:
    truth = tolerance.truth([x], "sorted rows")
    error = error_of(tolerance.problem.abi.outputs[0], found, truth.reference[0], truth.oracle[0])
    limit = tolerance.limits([truth.scale])[0]
    return error.relative_l2 <= limit.relative_l2 and error.worst_row <= limit.worst_row
