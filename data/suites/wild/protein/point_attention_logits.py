"""Logits of invariant point attention: products of channels, a bias of the pair, less the distances between points of each head.

Occurs in AlphaFold's structure module. Memory-bound: the differences of points are larger than the logits.
"""

import torch
import torch.nn.functional as F

RESIDUES = 512
HEADS = 12
HEAD_SIZE = 16
POINTS = 4
SMALL_SIZES = [
    {"RESIDUES": 7, "HEADS": 3, "HEAD_SIZE": 5, "POINTS": 2},
    {"RESIDUES": 16, "HEADS": 2, "HEAD_SIZE": 16, "POINTS": 4},
]


def point_attention_logits(query, key, bias, query_points, key_points, head_weights):
    logits = torch.einsum("ihc,jhc->hij", query, key) * query.shape[-1] ** -0.5 + bias
    apart = query_points[:, None] - key_points[None]
    distances = apart.square().sum(dim=(-1, -2)).permute(2, 0, 1)
    logits = logits - 0.5 * F.softplus(head_weights)[:, None, None] * distances / query_points.shape[2]
    return torch.softmax(logits, dim=-1)


def example_inputs():
    points = (RESIDUES, HEADS, POINTS, 3)
    return (
        torch.randn(RESIDUES, HEADS, HEAD_SIZE),
        torch.randn(RESIDUES, HEADS, HEAD_SIZE),
        torch.randn(HEADS, RESIDUES, RESIDUES),
        torch.randn(points),
        torch.randn(points),
        torch.randn(HEADS),
    )
