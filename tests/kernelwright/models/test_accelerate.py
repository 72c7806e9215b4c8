"""`kernelwright.accelerate`: a model that is there already, with one call or an iterable of calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import kernelwright
from graphs.run.settings import RunSettings
from kernelwright.models.here import calls_of
from kernelwright.models.records import ModelSettings
from tests.tools.models.samples import InPlace
from tools.errors import UserError


@pytest.mark.parametrize(
    ("inputs", "names"),
    [
        (torch.ones(2), ["call"]),
        ((torch.ones(2), 3), ["call"]),
        ({"x": torch.ones(2)}, ["call"]),
        ([torch.ones(2), (torch.ones(3),)], ["call 0", "call 1"]),
        (((torch.ones(size),) for size in range(1, 99)), ["call 0", "call 1", "call 2", "call 3"]),
    ],
)
def test_inputs_are_one_call_or_an_iterable_of_calls(inputs: Any, names: list[str]) -> None:
    """A tensor, a tuple, keywords, a list, and of a loader without end the first few."""
    assert [one.name for one in calls_of(inputs)] == names


@pytest.mark.parametrize("inputs", [3, []])
def test_inputs_without_a_call_are_refused(inputs: Any) -> None:
    """A number, and an empty list."""
    with pytest.raises(UserError):
        calls_of(inputs)


def test_a_model_in_training_mode_is_refused(tmp_path: Path) -> None:
    """Before anything is run."""
    with pytest.raises(UserError, match="training mode"):
        kernelwright.accelerate(nn.Linear(2, 2), torch.ones(2, 2), out=tmp_path / "faster", home=tmp_path)


def test_a_model_in_which_nothing_can_be_replaced_stays_as_it_is(tmp_path: Path) -> None:
    """There is a report that names what was left alone, and no package."""
    model = nn.Sequential(InPlace()).eval()
    settings = ModelSettings(run=RunSettings(memory=False))
    found = kernelwright.accelerate(model, torch.ones(4, 4), out=tmp_path / "faster", settings=settings, home=tmp_path)
    assert not found.package
    assert type(model[0]) is InPlace
    text = (tmp_path / "faster" / "report.md").read_text()
    assert "No operator helps Sequential" in text
    assert "it updates a tensor in place" in text
