"""The sixteen nearest points of each query by squared distance, with the distances.

Occurs in point clouds, in retrieval and in nearest-neighbour graphs. Compute-bound in the product; all distances need not be written.
"""

import torch

QUERIES = 4096
POINTS = 16384
WIDTH = 64
NEAREST = 16
SMALL_SIZES = [{"QUERIES": 5, "POINTS": 37, "WIDTH": 19}, {"QUERIES": 8, "POINTS": 64, "WIDTH": 16}]


def nearest_neighbours(queries, points):
    squares = queries.square().sum(dim=1)[:, None] + points.square().sum(dim=1)[None, :]
    distances = squares - 2.0 * queries @ points.t()
    return distances.topk(NEAREST, dim=1, largest=False)


def example_inputs():
    return torch.randn(QUERIES, WIDTH), torch.randn(POINTS, WIDTH)
