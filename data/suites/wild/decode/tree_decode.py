"""Attention of a few drafted tokens, a tree, over the cache and over one another by a mask; scores are soft-capped.

Occurs where drafted trees are verified (EAGLE, Medusa) with models such as Gemma 2. Memory-bound by the cache.
"""

import torch

BATCH = 8
HEADS = 16
DRAFTED = 16
LENGTH = 4096
HEAD_SIZE = 128
SMALL_SIZES = [
    {"BATCH": 2, "HEADS": 3, "DRAFTED": 5, "LENGTH": 37, "HEAD_SIZE": 24},
    {"BATCH": 1, "HEADS": 2, "DRAFTED": 16, "LENGTH": 64, "HEAD_SIZE": 32},
]


def tree_decode(query, key, value, drafted_key, drafted_value, sees):
    key, value = torch.cat((key, drafted_key), dim=2), torch.cat((value, drafted_value), dim=2)
    scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
    scores = 50.0 * torch.tanh(scores.float() / 50.0)
    cached = torch.ones(sees.shape[0], sees.shape[1], key.shape[2] - sees.shape[2], dtype=torch.bool, device=sees.device)
    allowed = torch.cat((cached, sees), dim=2)
    weights = torch.softmax(scores.masked_fill(~allowed[:, None], float("-inf")), dim=-1)
    return weights.to(value.dtype) @ value


def example_inputs():
    cache, drafted = (BATCH, HEADS, LENGTH, HEAD_SIZE), (BATCH, HEADS, DRAFTED, HEAD_SIZE)
    sees = torch.rand(BATCH, DRAFTED, DRAFTED) < 0.4
    return (
        torch.randn(drafted, dtype=torch.bfloat16),
        torch.randn(cache, dtype=torch.bfloat16),
        torch.randn(cache, dtype=torch.bfloat16),
        torch.randn(drafted, dtype=torch.bfloat16),
        torch.randn(drafted, dtype=torch.bfloat16),
        sees.tril() | torch.eye(DRAFTED, dtype=torch.bool),
    )
