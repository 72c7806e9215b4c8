"""Attention without softmax: scores fade with distance by a factor of each head, and each row is divided by its own sum.

Occurs in RetNet's parallel form. Compute-bound in two products; the square of scores need not be written.
"""

import torch

BATCH = 2
HEADS = 8
LENGTH = 2048
SIZE = 64
SMALL_SIZES = [
    {"BATCH": 2, "HEADS": 3, "LENGTH": 37, "SIZE": 24},
    {"BATCH": 1, "HEADS": 2, "LENGTH": 64, "SIZE": 16},
]


def relative_decay(query, key, value, log_decay):
    place = torch.arange(query.shape[2], device=query.device)
    behind = place[:, None] - place[None]
    fade = torch.exp(log_decay[:, None, None] * behind.clamp(min=0)) * (behind >= 0)
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key).float() * fade
    scores = scores / scores.abs().sum(dim=-1, keepdim=True).clamp(min=1.0)
    return torch.einsum("bhqk,bhkd->bhqd", scores.to(value.dtype), value)


def example_inputs():
    rows = (BATCH, HEADS, LENGTH, SIZE)
    return (
        torch.randn(rows, dtype=torch.bfloat16) * SIZE**-0.5,
        torch.randn(rows, dtype=torch.bfloat16),
        torch.randn(rows, dtype=torch.bfloat16),
        torch.log1p(-torch.exp2(-5.0 - torch.arange(HEADS, dtype=torch.float32))),
    )
