"""Problems that do not fit on the device."""

from __future__ import annotations

import pytest

from tools.errors import UnjudgeableError
from tools.evaluation.supervisor.problem_room import refuse_too_large
from tools.hardware import load_sheet
from tools.records import Problem


def test_a_problem_that_cannot_fit_is_refused_with_a_sentence(problem: Problem) -> None:
    """One of 60 GB is too large for a device of 141 GB, which has to hold float64 copies beside it; a small one is not."""
    sheet = load_sheet("h200")
    refuse_too_large(problem, sheet)
    large = problem.abi.inputs[0].model_copy(update={"shape": (15, 1 << 30)})
    with pytest.raises(UnjudgeableError, match=r"has 6\d GB of tensors, more than a quarter of the 141 GB"):
        refuse_too_large(problem.model_copy(update={"abi": problem.abi.model_copy(update={"arguments": (large,)})}), sheet)
