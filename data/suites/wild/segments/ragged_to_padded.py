"""Spreads the rows of a packed batch over a padded one and adds each place's embedding; what no row fills is zero.

Occurs where ragged sequences (nested tensors, packed batches) meet a dense operator. Memory-bound: a gather with a mask.
"""

import torch

SEQUENCES = 64
LONGEST = 1024
ROWS = 32768
WIDTH = 512
SMALL_SIZES = [
    {"SEQUENCES": 3, "LONGEST": 7, "ROWS": 13, "WIDTH": 19},
    {"SEQUENCES": 4, "LONGEST": 16, "ROWS": 32, "WIDTH": 32},
]


def ragged_to_padded(rows, offsets, places):
    place = torch.arange(places.shape[0], device=rows.device)
    index = offsets[:-1, None] + place
    inside = index < offsets[1:, None]
    return (rows[index.clamp(max=rows.shape[0] - 1)] + places) * inside[..., None]


def example_inputs():
    cuts = torch.randint(0, ROWS + 1, (SEQUENCES - 1,)).sort().values
    offsets = torch.cat((torch.zeros(1, dtype=torch.long), cuts, torch.full((1,), ROWS)))
    return torch.randn(ROWS, WIDTH, dtype=torch.float16), offsets, torch.randn(LONGEST, WIDTH, dtype=torch.float16)
