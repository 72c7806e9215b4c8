"""A vocoder's stage.

Transposed convolution in time, a periodic activation for each channel, reflected edges and a dilated residual branch.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 8
CHANNELS = 256
FRAMES = 512
SMALL_SIZES = [{"BATCH": 1, "CHANNELS": 6, "FRAMES": 9}, {"BATCH": 2, "CHANNELS": 16, "FRAMES": 16}]


class Model(nn.Module):
    def __init__(self, channels, stride=5):
        super().__init__()
        half = channels // 2
        self.up = nn.ConvTranspose1d(
            channels, half, 2 * stride + 1, stride=stride, padding=stride // 2 + 1, output_padding=stride - 1 - stride // 2
        )
        self.alpha = nn.Parameter(torch.rand(1, half, 1) + 0.5)
        self.conv = nn.Conv1d(half, half, 3, dilation=3)
        self.out = nn.Conv1d(half, half, 1)
        self.half()

    def snake(self, x):
        return x + (self.alpha + 1e-4).reciprocal() * torch.sin(self.alpha * x).pow(2)

    def forward(self, x):
        x = self.up(x)
        y = self.conv(F.pad(self.snake(x), (3, 3), mode="reflect"))
        return torch.tanh(x + self.out(self.snake(y)))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, FRAMES, dtype=torch.float16)]


def get_init_inputs():
    return [CHANNELS]
