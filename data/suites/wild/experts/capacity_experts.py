"""Feed-forward blocks of all experts over tokens that were put into places of equal number.

Occurs in Switch Transformer and GShard, whose experts take a fixed capacity. Compute-bound: batched products around SwiGLU.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, experts, hidden, inner):
        super().__init__()
        self.gate = nn.Parameter(torch.randn(experts, hidden, inner, dtype=torch.float16) * hidden**-0.5)
        self.up = nn.Parameter(torch.randn(experts, hidden, inner, dtype=torch.float16) * hidden**-0.5)
        self.down = nn.Parameter(torch.randn(experts, inner, hidden, dtype=torch.float16) * inner**-0.5)

    def forward(self, x):
        return torch.bmm(F.silu(torch.bmm(x, self.gate)) * torch.bmm(x, self.up), self.down)


experts = 8
capacity = 1024
hidden = 2048
inner = 4096
SMALL_SIZES = [
    {"experts": 3, "capacity": 5, "hidden": 19, "inner": 37},
    {"experts": 2, "capacity": 16, "hidden": 32, "inner": 16},
]


def get_inputs():
    return [torch.randn(experts, capacity, hidden, dtype=torch.float16)]


def get_init_inputs():
    return [experts, hidden, inner]
