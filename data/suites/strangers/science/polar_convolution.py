"""A convolution on the globe: columns wrap round, rows over a pole come from the other side; a gated residual follows."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS = 64
LAT = 180
LON = 360
SMALL_SIZES = [{"BATCH": 1, "CHANNELS": 4, "LAT": 6, "LON": 8}, {"BATCH": 2, "CHANNELS": 8, "LAT": 8, "LON": 16}]


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, 2 * channels, 5, dtype=torch.bfloat16)
        self.scale = nn.Parameter(torch.full((channels, 1, 1), 0.1, dtype=torch.bfloat16))

    def globe(self, x, n):
        half = x.shape[-1] // 2
        top = x[:, :, :n].flip(2).roll(half, dims=3)
        bottom = x[:, :, -n:].flip(2).roll(half, dims=3)
        x = torch.cat([top, x, bottom], dim=2)
        return torch.cat([x[..., -n:], x, x[..., :n]], dim=3)

    def forward(self, x):
        y, gate = self.conv(self.globe(x, 2)).chunk(2, dim=1)
        return x + self.scale * torch.nn.functional.silu(y) * torch.sigmoid(gate)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, LAT, LON, dtype=torch.bfloat16)]


def get_init_inputs():
    return [CHANNELS]
