"""Operators that round as cuDNN does, in models that are proven on a CPU, where PyTorch does not round."""

# ruff: noqa: D102 - what a forward does, its class says

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import nn

from tools.evaluation.trusted.rounding import rounded, to_tf32
from tools.models.loading import Workload
from tools.models.proof.prover import Prover


class Convolution(nn.Module):
    """A convolution behind a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.convolution = nn.InstanceNorm2d(8), nn.Conv2d(8, 16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.convolution(self.norm(x))


class Rounding(nn.Module):
    """The same convolution, with what `rounds` makes of both operands."""

    def __init__(self, convolution: nn.Conv2d, rounds: Any) -> None:
        super().__init__()
        self.weight, self.bias, self.rounds = convolution.weight, convolution.bias, rounds

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.conv2d(self.rounds(x), self.rounds(self.weight), self.bias)


class Package:
    """Has one operator, for the convolution of a model."""

    def __init__(self, rounds: Any) -> None:
        self.rounds = rounds

    def apply(self, model: Any, *, without: Sequence[str] = (), verify: bool = False) -> list[str]:
        mine = Rounding(model.convolution, self.rounds)
        model.convolution.forward = mine.forward
        return ["convolution"]

    def remove(self, model: Any) -> None:
        del model.convolution.forward

    def counts(self, *, reset: bool = False) -> dict[str, dict[str, int]]:
        return {"hits": {"convolution": 1}, "misses": {}}


def images(seed: int) -> list[Workload]:
    """One call by seed."""
    return [Workload("images", (torch.randn(2, 8, 12, 12, generator=torch.Generator().manual_seed(seed)),), {}, 1.0)]


@pytest.mark.parametrize(
    ("policy", "rounds", "holds"),
    [
        ("default", to_tf32, True),
        ("exact", to_tf32, False),
        ("default", lambda value: rounded(value, 2.0**-7), False),
    ],
    ids=["as cuDNN does", "where nothing may round", "by more digits"],
)
def test_an_operator_may_round_as_the_original_does_on_a_gpu(policy: str, rounds: Any, *, holds: bool) -> None:
    """Under PyTorch's own flags cuDNN reads TF32, so a convolution of its digits is right, and one of fewer is not."""
    model = Convolution().eval().requires_grad_(False)
    assert Prover(model, Package(rounds), images, seed=1, policy=policy).correctness(graphs=False).holds is holds
