"""Puts the distance of each two residues into a bin and looks up the bin's features; the place along the chain adds others.

Occurs where templates and recycled structures enter AlphaFold. Memory-bound by the output.
"""

import torch

RESIDUES = 768
CHANNELS = 64
BINS = 15
REACH = 32
SMALL_SIZES = [{"RESIDUES": 7, "CHANNELS": 19}, {"RESIDUES": 16, "CHANNELS": 16}]


def distance_features(positions, index, edges, by_distance, by_offset):
    squared = (positions[:, None] - positions[None]).square().sum(dim=-1)
    bins = torch.bucketize(squared, edges)
    offset = (index[:, None] - index[None]).clamp(-REACH, REACH) + REACH
    return by_distance[bins] + by_offset[offset]


def example_inputs():
    return (
        torch.randn(RESIDUES, 3) * 10.0,
        torch.arange(RESIDUES) + torch.randint(0, 3, (RESIDUES,)).cumsum(dim=0),
        torch.linspace(3.0, 21.0, BINS).square(),
        torch.randn(BINS + 1, CHANNELS),
        torch.randn(2 * REACH + 1, CHANNELS),
    )
