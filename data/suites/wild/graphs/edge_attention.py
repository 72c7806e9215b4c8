"""Attention along edges: logits of both ends, a softmax over the edges that enter a node, the weighted sum of their sources.

Occurs in GAT. Memory-bound; the softmax is over segments of different lengths.
"""

import torch
import torch.nn.functional as F

NODES = 50000
EDGES = 500000
HEADS = 4
WIDTH = 32
SMALL_SIZES = [
    {"NODES": 11, "EDGES": 37, "HEADS": 3, "WIDTH": 5},
    {"NODES": 16, "EDGES": 64, "HEADS": 2, "WIDTH": 16},
]


def edge_attention(x, source, target, by_source, by_target):
    logits = (x * by_source).sum(dim=-1)[source] + (x * by_target).sum(dim=-1)[target]
    logits = F.leaky_relu(logits, 0.2)
    index = target[:, None].expand_as(logits)
    empty = torch.full((x.shape[0], x.shape[1]), float("-inf"), device=x.device)
    largest = empty.scatter_reduce(0, index, logits, reduce="amax")
    weights = (logits - largest[target]).exp()
    total = torch.zeros_like(largest).scatter_add(0, index, weights)
    weights = weights / (total[target] + 1e-16)
    return torch.zeros_like(x).index_add(0, target, x[source] * weights[..., None])


def example_inputs():
    return (
        torch.randn(NODES, HEADS, WIDTH),
        torch.randint(0, NODES, (EDGES,)),
        torch.randint(0, NODES, (EDGES,)),
        torch.randn(HEADS, WIDTH) * 0.3,
        torch.randn(HEADS, WIDTH) * 0.3,
    )
