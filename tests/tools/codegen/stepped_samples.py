"""References with loops of Python that no single kernel holds, so that each step launches those of its body."""

from __future__ import annotations

BALANCED = """import torch

BATCH = 2
SIDE = 300
DIM = 20
ROUNDS = 24
SMALL_SIZES = [
    {"BATCH": 3, "SIDE": 7, "DIM": 5, "ROUNDS": 7},
    {"BATCH": 1, "SIDE": 9, "DIM": 6, "ROUNDS": 9},
]


class Model(torch.nn.Module):
    def __init__(self, rounds):
        super().__init__()
        self.rounds = rounds

    def forward(self, x, y):
        scores = torch.exp(torch.einsum("bid,bjd->bij", x, y) / 8)
        rows = torch.ones_like(scores[:, :, 0])
        for _ in range(self.rounds):
            cols = 1.0 / (scores * rows[:, :, None]).sum(1)
            rows = 1.0 / (scores * cols[:, None, :]).sum(2)
        return scores * rows[:, :, None] * cols[:, None, :]


def get_inputs():
    return [torch.randn(BATCH, SIDE, DIM), torch.randn(BATCH, SIDE, DIM)]


def get_init_inputs():
    return [ROUNDS]
"""

GATED = """import torch
from torch import nn

BATCH = 3
STEPS = 40
DIM = 96
WIDE = 320
SMALL_SIZES = [{"BATCH": 3, "STEPS": 7, "DIM": 5, "WIDE": 10}, {"BATCH": 1, "STEPS": 9, "DIM": 9, "WIDE": 7}]


class Model(nn.Module):
    def __init__(self, dim, wide):
        super().__init__()
        self.into = nn.Linear(dim, 2 * wide)
        self.again = nn.Parameter(torch.randn(wide, 2 * wide) / wide**0.5)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], self.again.shape[0])
        out = []
        for t in range(x.shape[1]):
            gate, new = (self.into(x[:, t]) + h @ self.again).chunk(2, dim=-1)
            gate = torch.sigmoid(gate)
            h = gate * h + (1 - gate) * torch.tanh(new)
            out.append(h)
        return torch.stack(out, dim=1), h


def get_inputs():
    return [torch.randn(BATCH, STEPS, DIM)]


def get_init_inputs():
    return [DIM, WIDE]
"""

SHIFTED = """import torch

STEPS = 30
BATCH = 4
DIM = 40
SMALL_SIZES = [{"STEPS": 7, "BATCH": 2, "DIM": 9}, {"STEPS": 9, "BATCH": 3, "DIM": 6}]


def shifted(frames, start):
    best = start
    for frame in frames.unbind(0):
        ahead = torch.nn.functional.pad(best[:, :-1], (1, 0), value=-100.0)
        best = torch.maximum(best, ahead).cumsum(1) / 8 + frame
    return best.amax(1)


def example_inputs():
    return torch.randn(STEPS, BATCH, DIM), torch.randn(BATCH, DIM)
"""

COUNTED = """import torch

STEPS = 30
SIDE = 24
SMALL_SIZES = [{"STEPS": 7, "SIDE": 9}, {"STEPS": 10, "SIDE": 6}]


class Model(torch.nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def forward(self, x):
        power = x
        for t in range(self.steps):
            power = torch.tanh(power @ power / 16) + x.relu() * (t + 1)
        return power


def get_inputs():
    return [torch.randn(SIDE, SIDE)]


def get_init_inputs():
    return [STEPS]
"""

STEPPED = {"balanced": BALANCED, "gated": GATED, "shifted": SHIFTED, "counted": COUNTED}
"""All of them by name."""
