"""Causal attention over the last 128 tokens alone.

Occurs in every second layer of gpt-oss; Mistral and Gemma 3 have wider windows. Compute-bound; tiles outside of the band
need not be computed.
"""

import torch
import torch.nn.functional as F

BATCH = 2
HEADS = 16
SEQUENCE = 4096
HEAD_SIZE = 128
WINDOW = 128
SMALL_SIZES = [
    {"BATCH": 1, "HEADS": 2, "SEQUENCE": 157, "HEAD_SIZE": 24},
    {"BATCH": 2, "HEADS": 1, "SEQUENCE": 192, "HEAD_SIZE": 32},
]


def window_attention(query, key, value):
    places = torch.arange(query.shape[2], device=query.device)
    distance = places[:, None] - places[None, :]
    seen = (distance >= 0) & (distance < WINDOW)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=seen)


def example_inputs():
    shape = (BATCH, HEADS, SEQUENCE, HEAD_SIZE)
    return tuple(torch.randn(shape, dtype=torch.bfloat16) for _ in range(3))
