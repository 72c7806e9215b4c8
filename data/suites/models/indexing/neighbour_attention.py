"""Each point attends to its own list of neighbours, gathered by index, with a bias by their offsets.

Occurs in Point Transformer and in graph transformers. Memory-bound: gathered rows need not be written before they are used.
"""

import torch

POINTS = 16384
NEIGHBOURS = 24
CHANNELS = 64
SMALL_SIZES = [{"POINTS": 7, "NEIGHBOURS": 3, "CHANNELS": 12}, {"POINTS": 32, "NEIGHBOURS": 8, "CHANNELS": 16}]


def neighbour_attention(query, key, value, places, neighbours, slope):
    near = places[neighbours] - places[:, None]
    scores = (query[:, None] * key[neighbours]).sum(dim=-1) * query.shape[-1] ** -0.5
    scores = scores - slope * near.square().sum(dim=-1)
    weights = torch.softmax(scores, dim=-1)
    return (weights[..., None] * value[neighbours]).sum(dim=1)


def example_inputs():
    return (
        torch.randn(POINTS, CHANNELS),
        torch.randn(POINTS, CHANNELS),
        torch.randn(POINTS, CHANNELS),
        torch.randn(POINTS, 3),
        torch.randint(0, POINTS, (POINTS, NEIGHBOURS)),
        0.1,
    )
