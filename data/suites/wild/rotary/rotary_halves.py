"""Rotary embedding of queries and keys, each head's halves turned against one another.

Occurs in every layer of Llama, Mistral and Qwen, with tables of cosines and sines that are looked up by position. Memory-bound: each
element is read and written once.
"""

import torch

TOKENS = 8192
HEADS = 32
KEY_HEADS = 8
HEAD_SIZE = 128
POSITIONS = 32768
SMALL_SIZES = [
    {"TOKENS": 5, "HEADS": 3, "KEY_HEADS": 1, "HEAD_SIZE": 24, "POSITIONS": 19},
    {"TOKENS": 16, "HEADS": 4, "KEY_HEADS": 2, "HEAD_SIZE": 32, "POSITIONS": 64},
]
MORE_SIZES = [{"TOKENS": 64}, {"TOKENS": 1024}]


def turn(x, cosine, sine):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)


def rotary_halves(query, key, positions, cosines, sines):
    cosine = cosines[positions].unsqueeze(1)
    sine = sines[positions].unsqueeze(1)
    return turn(query, cosine, sine), turn(key, cosine, sine)


def example_inputs():
    angles = torch.rand(POSITIONS, HEAD_SIZE // 2) * 6.28
    return (
        torch.randn(TOKENS, HEADS, HEAD_SIZE, dtype=torch.bfloat16),
        torch.randn(TOKENS, KEY_HEADS, HEAD_SIZE, dtype=torch.bfloat16),
        torch.randint(0, POSITIONS, (TOKENS,)),
        angles.cos().bfloat16(),
        angles.sin().bfloat16(),
    )
