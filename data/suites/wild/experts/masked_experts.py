"""A mixture of experts in a loop over the experts, each of which runs on all tokens and counts where it was chosen.

Occurs in models' reference code. Compute-bound: most of the work is thrown away, a grouped product does a quarter of it.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, experts, hidden, inner):
        super().__init__()
        self.first = nn.ModuleList(nn.Linear(hidden, inner, bias=False, dtype=torch.bfloat16) for _ in range(experts))
        self.second = nn.ModuleList(nn.Linear(inner, hidden, bias=False, dtype=torch.bfloat16) for _ in range(experts))

    def forward(self, x, weights, chosen):
        out = torch.zeros_like(x)
        for index, (first, second) in enumerate(zip(self.first, self.second, strict=True)):
            share = (weights * (chosen == index)).sum(dim=-1, keepdim=True)
            out = out + share.to(x.dtype) * second(F.silu(first(x)))
        return out


tokens = 512
experts = 8
chosen = 2
hidden = 2048
inner = 4096
SMALL_SIZES = [{"tokens": 5, "hidden": 19, "inner": 37}, {"tokens": 16, "hidden": 32, "inner": 16}]


def get_inputs():
    weights, experts_of = torch.softmax(torch.randn(tokens, experts), dim=-1).topk(chosen, dim=-1)
    return [torch.randn(tokens, hidden, dtype=torch.bfloat16), weights, experts_of]


def get_init_inputs():
    return [experts, hidden, inner]
