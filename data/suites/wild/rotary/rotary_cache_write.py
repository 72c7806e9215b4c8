"""Rotary embedding of queries and keys; keys and values then take their slots of a cache.

Occurs at each step of a serving engine, where slots are what the engine's allocator gave to each token. Memory-bound: without a copy of the
cache only the new tokens move; the reference copies it, since it changes no input.
"""

import torch

TOKENS = 256
HEADS = 32
KEY_HEADS = 8
HEAD_SIZE = 128
SLOTS = 16384
SMALL_SIZES = [
    {"TOKENS": 5, "HEADS": 3, "KEY_HEADS": 2, "HEAD_SIZE": 12, "SLOTS": 23},
    {"TOKENS": 8, "HEADS": 4, "KEY_HEADS": 1, "HEAD_SIZE": 16, "SLOTS": 32},
]
MORE_SIZES = [{"TOKENS": 8}, {"TOKENS": 4096}]


def turn(x, cosine, sine):
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1).to(x.dtype)


def rotary_cache_write(query, key, value, cosine, sine, slots, key_cache, value_cache):
    query = turn(query, cosine[:, None], sine[:, None])
    key = turn(key, cosine[:, None], sine[:, None])
    return query, key_cache.index_copy(0, slots, key), value_cache.index_copy(0, slots, value)


def example_inputs():
    angles = torch.rand(TOKENS, HEAD_SIZE // 2) * 6.28
    return (
        torch.randn(TOKENS, HEADS, HEAD_SIZE, dtype=torch.float16),
        torch.randn(TOKENS, KEY_HEADS, HEAD_SIZE, dtype=torch.float16),
        torch.randn(TOKENS, KEY_HEADS, HEAD_SIZE, dtype=torch.float16),
        angles.cos(),
        angles.sin(),
        torch.randperm(SLOTS)[:TOKENS],
        torch.randn(SLOTS, KEY_HEADS, HEAD_SIZE, dtype=torch.float16),
        torch.randn(SLOTS, KEY_HEADS, HEAD_SIZE, dtype=torch.float16),
    )
