"""A frozen linear layer with a trained addition of low rank.

Occurs in every layer that is tuned with LoRA. Compute-bound: the addition costs little if it shares the output's tile.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, inputs, outputs, rank):
        super().__init__()
        self.base = nn.Linear(inputs, outputs, bias=False, dtype=torch.bfloat16)
        self.down = nn.Parameter(torch.randn(rank, inputs, dtype=torch.bfloat16) * inputs**-0.5)
        self.up = nn.Parameter(torch.randn(outputs, rank, dtype=torch.bfloat16) * rank**-0.5)
        self.scale = 2.0

    def forward(self, x):
        return self.base(x) + (x @ self.down.t()) @ self.up.t() * self.scale


tokens = 4096
inputs = 4096
outputs = 4096
rank = 16
SMALL_SIZES = [
    {"tokens": 5, "inputs": 67, "outputs": 37, "rank": 3},
    {"tokens": 16, "inputs": 64, "outputs": 32, "rank": 16},
]
MORE_SIZES = [{"tokens": 16}, {"rank": 64}]


def get_inputs():
    return [torch.randn(tokens, inputs, dtype=torch.bfloat16)]


def get_init_inputs():
    return [inputs, outputs, rank]
