"""Causal attention with soft-capped scores, where four query heads share one key head.

Occurs in Gemma 2 and Grok. Compute-bound; the cap is a tanh of each score.
"""

import torch

BATCH = 2
HEADS = 16
KEY_HEADS = 4
SEQUENCE = 2048
HEAD_SIZE = 128
SMALL_SIZES = [
    {"BATCH": 2, "HEADS": 4, "KEY_HEADS": 1, "SEQUENCE": 19, "HEAD_SIZE": 24},
    {"BATCH": 1, "HEADS": 8, "KEY_HEADS": 2, "SEQUENCE": 16, "HEAD_SIZE": 32},
]


def capped_grouped_attention(query, key, value):
    key = key.repeat_interleave(4, dim=1)
    value = value.repeat_interleave(4, dim=1)
    scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
    scores = 50.0 * torch.tanh(scores.float() / 50.0)
    later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
    return torch.softmax(scores.masked_fill(later, float("-inf")), dim=-1).to(value.dtype) @ value


def example_inputs():
    return (
        torch.randn(BATCH, HEADS, SEQUENCE, HEAD_SIZE, dtype=torch.bfloat16),
        torch.randn(BATCH, KEY_HEADS, SEQUENCE, HEAD_SIZE, dtype=torch.bfloat16),
        torch.randn(BATCH, KEY_HEADS, SEQUENCE, HEAD_SIZE, dtype=torch.bfloat16),
    )
