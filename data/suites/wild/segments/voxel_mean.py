"""Features of points, averaged in the cells of a grid whose side no input has.

Occurs in networks on point clouds. Bound by additions to memory, and by the features.
"""

import torch

POINTS = 200000
CHANNELS = 32
GRID = 48
SMALL_SIZES = [{"POINTS": 37, "CHANNELS": 4, "GRID": 3}, {"POINTS": 64, "CHANNELS": 8, "GRID": 4}]


def voxel_mean(points, features):
    place = (points * GRID).long().clamp(0, GRID - 1)
    cell = (place[:, 0] * GRID + place[:, 1]) * GRID + place[:, 2]
    total = torch.zeros(GRID**3, features.shape[1], device=points.device).index_add_(0, cell, features.float())
    count = torch.zeros(GRID**3, device=points.device).index_add_(0, cell, torch.ones_like(points[:, 0]))
    return (total / count.clamp(min=1).unsqueeze(-1)).to(features.dtype), count > 0


def example_inputs():
    return torch.rand(POINTS, 3), torch.randn(POINTS, CHANNELS).half()
