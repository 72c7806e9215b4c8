"""Capsules that agree: three rounds of routing between predictions and outputs, squashed to lengths below one."""

import torch
import torch.nn as nn

BATCH = 128
IN_CAPS = 1152
OUT_CAPS = 10
IN_DIM = 8
OUT_DIM = 16
SMALL_SIZES = [
    {"BATCH": 2, "IN_CAPS": 6, "OUT_CAPS": 3, "IN_DIM": 4, "OUT_DIM": 5},
    {"BATCH": 4, "IN_CAPS": 16, "OUT_CAPS": 4, "IN_DIM": 8, "OUT_DIM": 8},
]


def squash(s):
    n2 = s.float().pow(2).sum(-1, keepdim=True)
    return (n2 / (1 + n2) / torch.sqrt(n2 + 1e-7) * s.float()).to(s.dtype)


class Model(nn.Module):
    def __init__(self, n, m, d, e, rounds=3):
        super().__init__()
        self.W = nn.Parameter(torch.randn(n, m, d, e, dtype=torch.float16) * 0.1)
        self.rounds = rounds

    def forward(self, u):
        hat = torch.einsum("qnd,nmde->qnme", u, self.W)
        logits = torch.zeros(hat.shape[:3], device=u.device)
        for r in range(self.rounds):
            c = torch.softmax(logits, dim=2).to(hat.dtype)
            v = squash(torch.einsum("qnm,qnme->qme", c, hat))
            if r < self.rounds - 1:
                logits = logits + torch.einsum("qnme,qme->qnm", hat, v).float()
        return v, v.float().norm(dim=-1)


def get_inputs():
    return [torch.randn(BATCH, IN_CAPS, IN_DIM, dtype=torch.float16)]


def get_init_inputs():
    return [IN_CAPS, OUT_CAPS, IN_DIM, OUT_DIM]
