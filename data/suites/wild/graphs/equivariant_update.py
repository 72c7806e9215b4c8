"""Moves points along the lines to their neighbours, by weights that came from messages; the mean over a node's edges.

Occurs in EGNN and in diffusion of molecules. Memory-bound: small vectors, gathers and additions along edges.
"""

import torch

NODES = 200000
EDGES = 1600000
SMALL_SIZES = [{"NODES": 11, "EDGES": 37}, {"NODES": 16, "EDGES": 64}]


def equivariant_update(positions, weights, source, target):
    apart = positions[target] - positions[source]
    distance = (apart.square().sum(dim=-1, keepdim=True) + 1e-8).sqrt()
    moves = apart / (distance + 1.0) * torch.tanh(weights)[:, None]
    total = torch.zeros_like(positions).index_add(0, target, moves)
    count = torch.zeros(positions.shape[0], device=positions.device).index_add(0, target, torch.ones_like(weights))
    return positions + total / count.clamp(min=1.0)[:, None]


def example_inputs():
    return (
        torch.randn(NODES, 3) * 4.0,
        torch.randn(EDGES),
        torch.randint(0, NODES, (EDGES,)),
        torch.randint(0, NODES, (EDGES,)),
    )
