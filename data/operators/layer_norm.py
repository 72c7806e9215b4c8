"""Layer normalisation over the hidden dimension, with trained scale and shift.

Occurs twice in every block of a classic transformer. Memory-bound: mean and variance of a row, then one write.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, hidden_size, eps):
        super().__init__()
        self.norm = nn.LayerNorm(hidden_size, eps=eps)
        # as after training: neither all ones nor all zeros
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.2)
        nn.init.normal_(self.norm.bias, mean=0.0, std=0.2)

    def forward(self, x):
        return self.norm(x)


batch_size = 8
sequence_length = 1024
hidden_size = 4096
eps = 1e-5


def get_inputs():
    return [torch.randn(batch_size, sequence_length, hidden_size) * 2.0 + 0.5]


def get_init_inputs():
    return [hidden_size, eps]
