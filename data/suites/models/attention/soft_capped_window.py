"""Causal attention over a window of earlier positions, its scores bent towards a cap by tanh.

Occurs in Gemma 2's local layers. Compute-bound, if what lies outside of the window is never computed.
"""

import torch

BATCH = 2
HEADS = 8
LENGTH = 2048
SIZE = 128
WINDOW = 256
CAP = 30.0
SMALL_SIZES = [
    {"BATCH": 2, "HEADS": 3, "LENGTH": 291, "SIZE": 24},
    {"BATCH": 1, "HEADS": 1, "LENGTH": 320, "SIZE": 16},
]


def soft_capped_window(query, key, value):
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key).float() * query.shape[-1] ** -0.5
    scores = CAP * torch.tanh(scores / CAP)
    place = torch.arange(query.shape[2], device=query.device)
    behind = place[:, None] - place[None]
    scores = scores.masked_fill((behind < 0) | (behind >= WINDOW), float("-inf"))
    return torch.einsum("bhqk,bhkd->bhqd", torch.softmax(scores, dim=-1).to(value.dtype), value)


def example_inputs():
    rows = (BATCH, HEADS, LENGTH, SIZE)
    return (
        torch.randn(rows, dtype=torch.bfloat16),
        torch.randn(rows, dtype=torch.bfloat16),
        torch.randn(rows, dtype=torch.bfloat16),
    )
