"""Causal attention whose scores fall with the distance of key and query, at a slope of each head (ALiBi).

Occurs in MPT, BLOOM and Baichuan. Compute-bound; the bias is made of indices and need not be written.
"""

import torch

BATCH = 4
HEADS = 16
SEQUENCE = 2048
HEAD_SIZE = 64
SMALL_SIZES = [
    {"BATCH": 2, "HEADS": 3, "SEQUENCE": 19, "HEAD_SIZE": 24},
    {"BATCH": 1, "HEADS": 2, "SEQUENCE": 32, "HEAD_SIZE": 32},
]


def alibi_attention(query, key, value, slopes):
    places = torch.arange(query.shape[2], device=query.device)
    distance = places[None, :] - places[:, None]
    scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
    scores = scores.float() + slopes[:, None, None] * distance
    scores = scores.masked_fill(distance > 0, float("-inf"))
    return torch.softmax(scores, dim=-1).to(value.dtype) @ value


def example_inputs():
    shape = (BATCH, HEADS, SEQUENCE, HEAD_SIZE)
    return (
        torch.randn(shape, dtype=torch.float16),
        torch.randn(shape, dtype=torch.float16),
        torch.randn(shape, dtype=torch.float16),
        torch.rand(HEADS) * 0.5 + 0.01,
    )
