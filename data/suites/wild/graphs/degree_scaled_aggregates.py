"""Mean, spread, largest and smallest of the messages that enter a node, each also scaled by the node's degree.

Occurs in PNA. Memory-bound: one read of the messages gives all four.
"""

import torch

NODES = 20000
EDGES = 200000
WIDTH = 64
SMALL_SIZES = [{"NODES": 7, "EDGES": 37, "WIDTH": 13}, {"NODES": 8, "EDGES": 64, "WIDTH": 16}]


def degree_scaled_aggregates(messages, target, degree):
    index = target[:, None].expand_as(messages)
    empty = torch.zeros(degree.shape[0], messages.shape[1], dtype=messages.dtype, device=messages.device)
    count = degree.clamp(min=1.0)[:, None]
    mean = empty.scatter_add(0, index, messages) / count
    squares = empty.scatter_add(0, index, messages.square()) / count
    spread = ((squares - mean.square()).clamp(min=0.0) + 1e-5).sqrt()
    largest = empty.scatter_reduce(0, index, messages, reduce="amax", include_self=False)
    smallest = empty.scatter_reduce(0, index, messages, reduce="amin", include_self=False)
    every = torch.cat((mean, spread, largest, smallest), dim=1)
    scale = torch.log(degree + 1.0)[:, None] / 2.3
    return torch.cat((every, every * scale, every / (scale + 0.1)), dim=1)


def example_inputs():
    target = torch.randint(0, NODES, (EDGES,))
    return torch.randn(EDGES, WIDTH), target, torch.bincount(target, minlength=NODES).float()
