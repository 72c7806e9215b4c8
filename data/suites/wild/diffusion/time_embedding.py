"""Sines and cosines of time steps through two linear layers with SiLU, the vector of the prompt added.

Occurs at the entry of every diffusion model. Bound by launches: all of it is small.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, channels, hidden):
        super().__init__()
        self.register_buffer("frequencies", 10000.0 ** (-torch.arange(channels // 2) / (channels // 2)))
        self.first = nn.Linear(channels, hidden, dtype=torch.bfloat16)
        self.second = nn.Linear(hidden, hidden, dtype=torch.bfloat16)

    def forward(self, steps, prompt):
        angles = steps[:, None].float() * self.frequencies
        embedding = torch.cat((angles.cos(), angles.sin()), dim=-1).to(prompt.dtype)
        return self.second(F.silu(self.first(embedding))) + prompt


batch = 32
channels = 256
hidden = 3072
SMALL_SIZES = [{"batch": 3, "channels": 38, "hidden": 19}, {"batch": 16, "channels": 32, "hidden": 64}]


def get_inputs():
    return [torch.randint(0, 1000, (batch,)), torch.randn(batch, hidden, dtype=torch.bfloat16)]


def get_init_inputs():
    return [channels, hidden]
