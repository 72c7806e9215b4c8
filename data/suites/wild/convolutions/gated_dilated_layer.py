"""A dilated convolution whose halves are gate and filter, then its 1 by 1 projections into the residual and into the skip.

Occurs in WaveNet, DiffWave and HiFi vocoders. Compute-bound at many channels, memory-bound at few.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.dilated = nn.Conv1d(channels, 2 * channels, 3, padding=dilation, dilation=dilation)
        self.out = nn.Conv1d(channels, 2 * channels, 1)

    def forward(self, x):
        gate, value = self.dilated(x).chunk(2, dim=1)
        residual, skip = self.out(torch.sigmoid(gate) * torch.tanh(value)).chunk(2, dim=1)
        return (x + residual) * 0.70710678, skip


batch = 16
channels = 64
steps = 16000
dilation = 8
SMALL_SIZES = [{"batch": 2, "channels": 11, "steps": 37}, {"batch": 1, "channels": 16, "steps": 64}]


def get_inputs():
    return [torch.randn(batch, channels, steps)]


def get_init_inputs():
    return [channels, dilation]
