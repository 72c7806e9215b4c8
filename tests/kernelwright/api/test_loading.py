"""A delivered kernel in the user's own process."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import kernelwright
from tools.errors import UserError

KERNEL = """import torch


class ModelNew(torch.nn.Linear):
    def __init__(self, rows):
        super().__init__(rows, 2)
"""


def _result(kernel: Path | None) -> kernelwright.Result:
    return kernelwright.Result(
        run="r", folder=Path(), candidate="c", reason="it was not faster.", kernel=kernel, unconfirmed=None, evaluation=None, init="[3]"
    )


def test_a_result_makes_the_module(tmp_path: Path) -> None:
    """The kernel's module is constructed as the reference is, and takes over weights and mode."""
    (tmp_path / "kernel.py").write_text(KERNEL)
    reference = nn.Linear(3, 2).eval()
    module = _result(tmp_path / "kernel.py").module(like=reference)
    assert torch.equal(module.weight, reference.weight)
    assert not module.training


def test_without_a_kernel_there_is_none_to_load() -> None:
    """Where the reference is kept, asking for the module says so, and there is no gain to speak of."""
    assert _result(None).speedup is None
    with pytest.raises(UserError, match="it was not faster"):
        _result(None).module()


def test_settings_come_from_the_top() -> None:
    """Whatever a call takes is found where `optimize` is."""
    settings = kernelwright.RunSettings(budget=kernelwright.Budget(evaluations=2))
    assert settings.budget.evaluations == 2
    assert {"optimize", "RunSettings", "Budget", "UserError"} <= set(dir(kernelwright))


@pytest.mark.parametrize(
    ("problem", "inputs", "words"),
    [
        (nn.ReLU(), (), "comes without inputs"),
        (3, torch.ones(2), "A int is no operator"),
        ("data/operators/softmax.py", torch.ones(2), "makes its own inputs"),
    ],
)
def test_what_cannot_be_optimised_is_refused(problem: object, inputs: object, words: str) -> None:
    """A call that makes no sense is one line, before anything is made."""
    with pytest.raises(UserError, match=words):
        kernelwright.optimize(problem, inputs)  # type: ignore[arg-type]  # that is the point
