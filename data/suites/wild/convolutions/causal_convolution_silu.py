"""Causal convolution of each channel over four steps, with bias and SiLU.

Occurs in every Mamba and gated-delta layer. Memory-bound: each element is read once if neighbours stay on chip.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, channels, width):
        super().__init__()
        self.width = width
        self.weight = nn.Parameter(torch.randn(channels, 1, width, dtype=torch.bfloat16) * 0.5)
        self.bias = nn.Parameter(torch.randn(channels, dtype=torch.bfloat16) * 0.2)

    def forward(self, x):
        padded = F.pad(x, (self.width - 1, 0))
        return F.silu(F.conv1d(padded, self.weight, self.bias, groups=x.shape[1]))


batch = 8
channels = 4096
steps = 2048
width = 4
SMALL_SIZES = [{"batch": 2, "channels": 19, "steps": 37}, {"batch": 1, "channels": 32, "steps": 64}]


def get_inputs():
    return [torch.randn(batch, channels, steps, dtype=torch.bfloat16)]


def get_init_inputs():
    return [channels, width]
