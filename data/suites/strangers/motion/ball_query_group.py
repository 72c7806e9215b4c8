"""Neighbours within a ball of each centre, with their features beside their relative places, pooled to a maximum."""

import torch
import torch.nn as nn

CLOUDS = 8
POINTS = 2048
CENTRES = 256
CHANNELS = 64
OUT = 128
SMALL_SIZES = [
    {"CLOUDS": 2, "POINTS": 50, "CENTRES": 7, "CHANNELS": 5, "OUT": 8},
    {"CLOUDS": 1, "POINTS": 64, "CENTRES": 16, "CHANNELS": 16, "OUT": 16},
]


class Model(nn.Module):
    def __init__(self, channels, out, radius=0.25, most=16):
        super().__init__()
        self.radius = radius
        self.most = most
        self.mlp = nn.Linear(channels + 3, out).to(torch.bfloat16)

    def forward(self, xyz, features):
        B, N, _ = xyz.shape
        centres = xyz[:, :CENTRES]
        square = ((centres[:, :, None, :] - xyz[:, None, :, :]) ** 2).sum(-1)
        index = torch.arange(N, device=xyz.device).view(1, 1, N).expand(B, centres.shape[1], N)
        index = torch.where(square > self.radius**2, N, index)
        index = index.sort(dim=-1).values[:, :, : self.most]
        first = index[:, :, :1].expand_as(index)
        index = torch.where(index == N, first, index)
        batch = torch.arange(B, device=xyz.device).view(B, 1, 1)
        near = xyz[batch, index] - centres.unsqueeze(2)
        grouped = torch.cat([near.to(features.dtype) / self.radius, features[batch, index]], dim=-1)
        return torch.relu(self.mlp(grouped)).max(dim=2).values


def get_inputs():
    return [torch.rand(CLOUDS, POINTS, 3), torch.randn(CLOUDS, POINTS, CHANNELS, dtype=torch.bfloat16)]


def get_init_inputs():
    return [CHANNELS, OUT]
