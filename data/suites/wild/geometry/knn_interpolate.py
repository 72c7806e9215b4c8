"""Features of coarse points carried to fine ones: the three nearest of each, weighted by their distances.

Occurs in networks on point clouds (PointNet++, point transformers). Bound by the search: every pair of points has a distance.
"""

import torch

CLOUDS = 8
FINE = 4096
COARSE = 512
CHANNELS = 128
SMALL_SIZES = [
    {"CLOUDS": 2, "FINE": 37, "COARSE": 11, "CHANNELS": 19},
    {"CLOUDS": 2, "FINE": 64, "COARSE": 16, "CHANNELS": 16},
]


def knn_interpolate(fine, coarse, features):
    near, index = torch.cdist(fine, coarse).topk(3, dim=-1, largest=False)
    weight = 1.0 / (near + 1e-8)
    weight = weight / weight.sum(-1, keepdim=True)
    cloud = torch.arange(fine.shape[0], device=fine.device)[:, None, None]
    return (features[cloud, index].float() * weight[..., None]).sum(2).to(features.dtype)


def example_inputs():
    features = torch.randn(CLOUDS, COARSE, CHANNELS, dtype=torch.bfloat16)
    return torch.rand(CLOUDS, FINE, 3), torch.rand(CLOUDS, COARSE, 3), features
