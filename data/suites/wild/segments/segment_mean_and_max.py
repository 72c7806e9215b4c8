"""Mean and largest element of the rows of each voxel, beside its centre; empty voxels have zeros.

Occurs where point clouds and sets are pooled (PointNet, voxel features). Memory-bound: one read gives both.
"""

import torch

POINTS = 200000
VOXELS = 20000
WIDTH = 64
SMALL_SIZES = [{"POINTS": 37, "VOXELS": 5, "WIDTH": 19}, {"POINTS": 64, "VOXELS": 8, "WIDTH": 32}]


def segment_mean_and_max(x, voxels, centres):
    index = voxels[:, None].expand_as(x)
    empty = torch.zeros(centres.shape[0], x.shape[1], dtype=x.dtype, device=x.device)
    mean = empty.scatter_reduce(0, index, x, reduce="mean", include_self=False)
    largest = empty.scatter_reduce(0, index, x, reduce="amax", include_self=False)
    return torch.cat((centres, mean, largest), dim=1)


def example_inputs():
    return torch.randn(POINTS, WIDTH), torch.randint(0, VOXELS, (POINTS,)), torch.randn(VOXELS, 3)
