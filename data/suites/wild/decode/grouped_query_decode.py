"""One new token's attention over a cache whose sequences have different lengths; four query heads share one key head.

Occurs at every step of Llama-like models. Memory-bound by the cache; few rows need their keys split over many programs.
"""

import torch

BATCH = 32
HEADS = 32
KEY_HEADS = 8
LENGTH = 4096
HEAD_SIZE = 128
SMALL_SIZES = [
    {"BATCH": 2, "HEADS": 6, "KEY_HEADS": 2, "LENGTH": 37, "HEAD_SIZE": 16},
    {"BATCH": 1, "HEADS": 4, "KEY_HEADS": 1, "LENGTH": 64, "HEAD_SIZE": 32},
]
MORE_SIZES = [{"BATCH": 1, "LENGTH": 32768}]


def grouped_query_decode(query, key, value, lengths):
    groups = query.shape[1] // key.shape[1]
    query = query.unflatten(1, (key.shape[1], groups))
    scores = torch.einsum("bkgd,bkld->bkgl", query, key).float() * query.shape[-1] ** -0.5
    outside = torch.arange(key.shape[2], device=key.device) >= lengths[:, None]
    scores = scores.masked_fill(outside[:, None, None], float("-inf"))
    weights = torch.softmax(scores, dim=-1).to(value.dtype)
    return torch.einsum("bkgl,bkld->bkgd", weights, value).flatten(1, 2)


def example_inputs():
    return (
        torch.randn(BATCH, HEADS, HEAD_SIZE, dtype=torch.bfloat16),
        torch.randn(BATCH, KEY_HEADS, LENGTH, HEAD_SIZE, dtype=torch.bfloat16),
        torch.randn(BATCH, KEY_HEADS, LENGTH, HEAD_SIZE, dtype=torch.bfloat16),
        torch.randint(LENGTH // 4, LENGTH + 1, (BATCH,)),
    )
