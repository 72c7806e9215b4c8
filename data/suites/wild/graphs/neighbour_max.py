"""The largest, over each point's twenty neighbours, of a linear layer of the point and its difference to the neighbour.

Occurs in DGCNN and in networks of point clouds. Compute-bound; the joined features need no copy.
"""

import torch
import torch.nn.functional as F

CLOUDS = 8
POINTS = 2048
NEIGHBOURS = 20
WIDTH = 64
OUTPUTS = 64
SMALL_SIZES = [
    {"CLOUDS": 2, "POINTS": 7, "NEIGHBOURS": 3, "WIDTH": 11, "OUTPUTS": 13},
    {"CLOUDS": 1, "POINTS": 16, "NEIGHBOURS": 4, "WIDTH": 16, "OUTPUTS": 32},
]


def neighbour_max(x, neighbours, weight, bias):
    clouds = torch.arange(x.shape[0], device=x.device)[:, None, None]
    near = x[clouds, neighbours]
    own = x[:, :, None].expand_as(near)
    features = F.linear(torch.cat((own, near - own), dim=-1), weight, bias)
    return F.leaky_relu(features, 0.2).amax(dim=2)


def example_inputs():
    return (
        torch.randn(CLOUDS, POINTS, WIDTH, dtype=torch.float16),
        torch.randint(0, POINTS, (CLOUDS, POINTS, NEIGHBOURS)),
        torch.randn(OUTPUTS, 2 * WIDTH, dtype=torch.float16) * 0.1,
        torch.randn(OUTPUTS, dtype=torch.float16),
    )
