"""The time for which operators are interpreted in a proof without a GPU."""

# ruff: noqa: D102 - what a forward does, its class says

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from tools.models.proof.pace import Pace


class Norm(nn.Module):
    """What an operator stands for."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def replaced(*names: str) -> Any:
    """A module with operators of these names in its place, the first of which answers."""
    operators = [SimpleNamespace(name=name, hits=0) for name in names]
    installed = SimpleNamespace(entries=[SimpleNamespace(operator=one) for one in operators])

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        operators[0].hits += 1
        return x

    own = {"forward": forward, "kernelwright_installed": installed, "kernelwright_class": Norm}
    return type("Norm", (Norm,), own)()


def run(model: nn.Module, limit_s: float) -> Pace:
    """Run a model four times, in which each call takes a second."""
    ticks: Iterator[int] = count()
    pace = Pace(limit_s, clock=lambda: float(next(ticks)))
    for _ in range(4):
        with pace.watching(model):
            model(torch.ones(1))
    return pace


def test_an_operator_that_takes_long_steps_aside_and_that_is_said() -> None:
    """Where another call would take more than its part of the time, the original answers."""
    slow, other = replaced("slow"), replaced("other")
    other.forward = lambda x: x
    pace = run(nn.Sequential(slow, other), 4.0)
    assert type(slow) is Norm
    [note] = pace.notes()
    assert note.startswith("slow was interpreted in 2 of 4 calls, the original gave the others: one takes up to 1 s")


def test_every_operator_is_interpreted_once() -> None:
    """However long that takes."""
    [note] = run(nn.Sequential(replaced("slow")), 0.5).notes()
    assert "in 1 of 4 calls" in note


def test_a_module_stays_while_one_of_its_operators_has_time() -> None:
    """Which of them a call is for, its guards say."""
    both = replaced("slow", "quick")
    pace = run(nn.Sequential(both), 2.0)
    assert pace.over == {"slow"}
    assert not list(pace.notes())
    assert type(both) is not Norm


def test_on_a_device_there_is_no_limit() -> None:
    """Nothing is counted there."""
    assert not list(run(nn.Sequential(replaced("slow")), 0.0).notes())
