"""Small modules of every kind that a capture has to tell apart, and one model that holds them all."""

# ruff: noqa: D102 - what a forward does, its class says

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Norm(nn.Module):
    """A root-mean-square norm: several operators, one kernel."""

    def __init__(self, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(16) + 0.5)
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Noisy(nn.Module):
    """Draws random numbers."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + torch.rand_like(x)).sigmoid()


class InPlace(nn.Module):
    """Writes to what it is given."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mul_(2.0) + 1.0


class Remembers(nn.Module):
    """Gives another result at every call."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        return (x + self.count).sin()


class Branches(nn.Module):
    """Lets the contents of a tensor decide."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.tanh() if x.sum() > 0 else x.sigmoid()


class Narrow(nn.Module):
    """Holds its weights in eight bits."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 127, (16, 16), dtype=torch.int8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight.to(x.dtype) * 0.01


class Labelled(torch.Tensor):
    """A subclass of tensor."""


class Odd(nn.Module):
    """Holds a subclass of tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("shift", torch.rand(16).as_subclass(Labelled))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + self.shift.as_subclass(torch.Tensor)).exp().log()


class Masked(nn.Module):
    """Is given a mask with infinities, keywords and a number."""

    def forward(self, x: torch.Tensor, *, mask: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        return (x * scale + mask).softmax(-1)


class Mixed(nn.Module):
    """All of them, and two norms that a capture can do something with."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.other = Norm(), Norm(), Norm(eps=1e-3)
        self.parts = nn.ModuleList([Noisy(), Remembers(), Branches(), Narrow(), Odd()])
        self.in_place, self.masked = InPlace(), Masked()
        self.left, self.right = nn.Linear(16, 16), nn.Linear(16, 16)
        self.right.weight = self.left.weight

    def forward(self, x: torch.Tensor) -> Any:
        x = self.other(self.second(self.first(x)))
        for part in self.parts:
            x = part(x)
        mask = torch.zeros(16)
        mask[8:] = -torch.inf
        x = self.masked(self.in_place(x.clone()), mask=mask, scale=2.0)
        return self.right(self.left(x))
