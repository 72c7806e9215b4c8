"""Colour, depth and opacity of rays from the densities and colours of their samples, the nearest first.

Occurs in radiance fields (NeRF and what followed). Memory-bound: the running product of what passes through needs no memory of its own.
"""

import torch

RAYS = 65536
SAMPLES = 128
SMALL_SIZES = [{"RAYS": 5, "SAMPLES": 7}, {"RAYS": 8, "SAMPLES": 16}]


def composite_rays(density, colour, depth):
    last = torch.full_like(depth[:, :1], 1e10)
    step = torch.cat((depth[:, 1:] - depth[:, :-1], last), dim=-1)
    alpha = 1 - torch.exp(-torch.relu(density) * step)
    passes = torch.cat((torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10), dim=-1)
    weight = alpha * torch.cumprod(passes, dim=-1)[:, :-1]
    seen = (weight[..., None] * torch.sigmoid(colour.float())).sum(-2)
    opacity = weight.sum(-1)
    return seen + (1 - opacity[:, None]), (weight * depth).sum(-1), opacity


def example_inputs():
    depth = torch.rand(RAYS, SAMPLES).sort(-1).values * 4 + 2
    return torch.randn(RAYS, SAMPLES), torch.randn(RAYS, SAMPLES, 3, dtype=torch.float16), depth
