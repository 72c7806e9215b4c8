"""One new token's attention over a cache of int8 keys and values with a scale for each token and head.

Occurs where long contexts are served with a quantised cache. Memory-bound: the cache is half of what float16 takes.
"""

import torch

BATCH = 16
HEADS = 32
LENGTH = 8192
HEAD_SIZE = 64
SMALL_SIZES = [
    {"BATCH": 2, "HEADS": 3, "LENGTH": 37, "HEAD_SIZE": 24},
    {"BATCH": 1, "HEADS": 2, "LENGTH": 64, "HEAD_SIZE": 32},
]


def int8_cache_decode(query, key, key_scale, value, value_scale):
    key = key.to(query.dtype) * key_scale[..., None]
    value = value.to(query.dtype) * value_scale[..., None]
    scores = torch.matmul(query[:, :, None], key.transpose(-1, -2)) * query.shape[-1] ** -0.5
    weights = torch.softmax(scores.float(), dim=-1).to(query.dtype)
    return torch.matmul(weights, value).squeeze(2)


def example_inputs():
    cache, scales = (BATCH, HEADS, LENGTH, HEAD_SIZE), (BATCH, HEADS, LENGTH)
    return (
        torch.randn(BATCH, HEADS, HEAD_SIZE, dtype=torch.float16),
        torch.randint(-127, 128, cache, dtype=torch.int8),
        (0.01 + 0.01 * torch.rand(scales)).half(),
        torch.randint(-127, 128, cache, dtype=torch.int8),
        (0.01 + 0.01 * torch.rand(scales)).half(),
    )
