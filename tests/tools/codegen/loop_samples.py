"""References with loops of Python, each written in another way."""

from __future__ import annotations

LINEAR = """import torch

BATCH = 3
STEPS = 20
DIM = 24
SMALL_SIZES = [{"BATCH": 3, "STEPS": 7, "DIM": 5}, {"BATCH": 1, "STEPS": 13, "DIM": 9}]


def linear(a, x):
    a = torch.sigmoid(a)
    h = torch.zeros_like(x[:, 0])
    outs = []
    for t in range(x.shape[1]):
        h = a[:, t] * h + x[:, t]
        outs.append(h)
    return torch.stack(outs, dim=1) * 2, h


def example_inputs():
    return torch.randn(BATCH, STEPS, DIM), torch.randn(BATCH, STEPS, DIM)
"""

MATRIX = """import torch

BATCH = 2
STEPS = 20
DIM = 16
SMALL_SIZES = [{"BATCH": 3, "STEPS": 7, "DIM": 5}, {"BATCH": 1, "STEPS": 13, "DIM": 9}]


def matrix(q, k, v, g):
    state = torch.zeros(q.shape[0], q.shape[1], q.shape[-1], q.shape[-1], dtype=q.dtype, device=q.device)
    out = torch.empty_like(v)
    for t in range(q.shape[2]):
        decay = torch.exp(-torch.nn.functional.softplus(g[:, :, t]))
        state = state * decay[..., None, None] + k[:, :, t, :, None] * v[:, :, t, None, :]
        out[:, :, t] = (q[:, :, t].unsqueeze(-1) * state).sum(-2)
    return out


def example_inputs():
    shape = (BATCH, 2, STEPS, DIM)
    return torch.randn(shape), torch.randn(shape), torch.randn(shape), torch.randn(shape[:3])
"""

DELTA = """import torch

BATCH = 2
STEPS = 20
DIM = 16
SMALL_SIZES = [{"BATCH": 3, "STEPS": 7, "DIM": 5}, {"BATCH": 1, "STEPS": 13, "DIM": 9}]


def delta(q, k, v, beta):
    state = torch.zeros(q.shape[0], q.shape[-1], q.shape[-1], dtype=q.dtype, device=q.device)
    outs = []
    for q_t, k_t, v_t, b_t in zip(q.unbind(1), k.unbind(1), v.unbind(1), beta.unbind(1)):
        new = b_t[:, None] * (v_t - torch.einsum("bk,bkv->bv", k_t, state))
        state = state + k_t[:, :, None] * new[:, None, :]
        outs.append(torch.einsum("bk,bkv->bv", q_t, state).unsqueeze(1))
    return torch.cat(outs, dim=1)


def example_inputs():
    shape = (BATCH, STEPS, DIM)
    return torch.randn(shape), torch.randn(shape) * 0.2, torch.randn(shape), torch.rand(shape[:2])
"""

CELL = '''import torch
from torch import nn

BATCH = 3
STEPS = 20
DIM = 12
SMALL_SIZES = [{"BATCH": 3, "STEPS": 7, "DIM": 5}, {"BATCH": 1, "STEPS": 13, "DIM": 9}]


class Model(nn.Module):
    """A gated cell; the product of its input is no part of the recurrence."""

    def __init__(self, dim):
        super().__init__()
        self.given = nn.Linear(dim, 3 * dim)
        self.carried = nn.Linear(dim, 3 * dim)
        self.dim = dim

    def forward(self, x):
        h = x.new_zeros(x.shape[1], self.dim)
        outs = []
        for t in range(x.shape[0]):
            r_x, z_x, n_x = self.given(x[t]).chunk(3, dim=-1)
            r_h, z_h, n_h = self.carried(h).chunk(3, dim=-1)
            z = torch.sigmoid(z_x + z_h)
            h = (1 - z) * torch.tanh(n_x + torch.sigmoid(r_x + r_h) * n_h) + z * h
            outs += [h]
        return torch.stack(outs), h


def get_inputs():
    return [torch.randn(STEPS, BATCH, DIM)]


def get_init_inputs():
    return [DIM]
'''

BACKWARDS = """import torch

BATCH = 4
STEPS = 20
SMALL_SIZES = [{"BATCH": 3, "STEPS": 7}, {"BATCH": 1, "STEPS": 13}]


def backwards(rewards, values, running):
    out = torch.zeros_like(rewards)
    last = torch.zeros_like(rewards[:, 0])
    for t in reversed(range(rewards.shape[1])):
        last = rewards[:, t] + 0.99 * values[:, t + 1] * running[:, t] - values[:, t] + 0.94 * running[:, t] * last
        out[:, t] = last
    return out


def example_inputs():
    return torch.randn(BATCH, STEPS), torch.randn(BATCH, STEPS + 1), torch.rand(BATCH, STEPS)
"""

FROM_ITSELF = """import torch

BATCH = 3
STEPS = 20
DIM = 24
SMALL_SIZES = [{"BATCH": 3, "STEPS": 7, "DIM": 5}, {"BATCH": 1, "STEPS": 13, "DIM": 9}]


def from_itself(alpha, x):
    a = torch.sigmoid(alpha)
    y = torch.empty_like(x)
    y[:, 0] = x[:, 0]
    for t in range(1, x.shape[1]):
        y[:, t] = a * y[:, t - 1] + (1 - a) * x[:, t]
    return y


def example_inputs():
    return torch.randn(DIM, dtype=torch.bfloat16), torch.randn(BATCH, STEPS, DIM, dtype=torch.bfloat16)
"""

ROUNDS = """import torch

BATCH = 3
DIM = 24
ROUNDS = 20
SMALL_SIZES = [{"BATCH": 2, "DIM": 5, "ROUNDS": 7}, {"BATCH": 1, "DIM": 9, "ROUNDS": 13}]


class Model(torch.nn.Module):
    def __init__(self, rounds):
        super().__init__()
        self.rounds = rounds

    def forward(self, x, y):
        for _ in range(self.rounds):
            x = torch.tanh(x * 0.5 + y) + 0.1 * torch.sin(x)
        return x


def get_inputs():
    return [torch.randn(BATCH, DIM), torch.randn(BATCH, DIM)]


def get_init_inputs():
    return [ROUNDS]
"""

SCANNED = """import torch

BATCH = 3
STEPS = 20
DIM = 24
SMALL_SIZES = [{"BATCH": 3, "STEPS": 7, "DIM": 5}, {"BATCH": 1, "STEPS": 13, "DIM": 9}]


def scanned(x):
    state = torch.zeros_like(x[:, 0])
    outs = []
    for t in range(x.shape[1]):
        state = (torch.logcumsumexp(state + x[:, t], dim=-1) - 0.1 * torch.cumsum(state, dim=1)).clamp(min=-9.0, max=9.0)
        outs.append(state)
    return torch.stack(outs, dim=1)


def example_inputs():
    return (torch.randn(BATCH, STEPS, DIM),)
"""

RESONATOR = """import torch

BATCH = 3
STEPS = 20
DIM = 24
SMALL_SIZES = [{"BATCH": 3, "STEPS": 7, "DIM": 5}, {"BATCH": 1, "STEPS": 13, "DIM": 9}]


def resonator(x, b, first):
    y1, y2, y3 = first, torch.zeros_like(first), torch.ones_like(first)
    outs = []
    for t in range(x.shape[1]):
        y = x[:, t] + 0.5 * torch.tanh(b) * y1 - 0.3 * y2 + 0.1 * y3 * y3.sigmoid()
        y1, y2, y3 = y, y1, y2
        outs.append(y)
    return torch.stack(outs, dim=1), y3


def example_inputs():
    return torch.randn(BATCH, STEPS, DIM), torch.randn(DIM), torch.randn(BATCH, DIM)
"""

COMPONENTS = """import torch

BATCH = 3
PARTS = 5
ROUNDS = 20
SMALL_SIZES = [{"BATCH": 3, "PARTS": 4, "ROUNDS": 7}, {"BATCH": 1, "PARTS": 8, "ROUNDS": 9}]


class Model(torch.nn.Module):
    def __init__(self, rounds):
        super().__init__()
        self.rounds = rounds

    def forward(self, place):
        for _ in range(self.rounds):
            place = torch.tanh(place * 1.5 + 0.1)
            pull = place[:, 1] * place[:, -1] + place.select(1, 0)
            place = place - 0.3 * pull.unsqueeze(1)
        return place


def get_inputs():
    return [torch.randn(BATCH, PARTS)]


def get_init_inputs():
    return [ROUNDS]
"""

LOOPS = {
    "linear": LINEAR, "matrix": MATRIX, "delta": DELTA, "cell": CELL, "backwards": BACKWARDS, "from_itself": FROM_ITSELF,
    "rounds": ROUNDS, "scanned": SCANNED, "resonator": RESONATOR, "components": COMPONENTS,
}  # fmt: skip
"""By name: source text."""

GROWN = """import torch

ROWS = 16
COLUMNS = 512


def grown(mask):
    label = torch.arange(1, mask.shape[1] + 1, device=mask.device, dtype=mask.dtype)[None] * mask
    for _ in range(10):
        label = torch.tanh(label[:, None])[:, 0] * mask
    return label


def example_inputs():
    return (torch.rand(ROWS, COLUMNS),)
"""
"""Before its loop, the last operator of a step is done once to something else: of fewer rows, unless there is one."""

WRAPS = """import torch

STEPS = 150
SMALL_SIZES = [{"STEPS": 7}, {"STEPS": 13}]
ROWS = 8
COLUMNS = 16


def wraps(x):
    state = torch.zeros_like(x[:, 0])
    for step in range(STEPS):
        state = torch.tanh(state * 0.9 + x[:, step % COLUMNS])
    return state


def example_inputs():
    return (torch.randn(ROWS, COLUMNS),)
"""
"""What is read at a step is no longer at the step's number once that exceeds a dimension."""

SQUARES = ROUNDS.replace("torch.tanh(x * 0.5 + y) + 0.1 * torch.sin(x)", "torch.tanh(y - 0.5 * (x @ x)) * 1.5").replace(
    ", DIM)", ", DIM, DIM)"
)
