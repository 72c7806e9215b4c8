"""Splits a packed projection into queries, keys and values and turns only the first channels of each head.

Occurs in GPT-NeoX, Phi and GLM, where a quarter to a half of a head's channels are rotary. Memory-bound: the split needs no copy.
"""

import torch

TOKENS = 4096
HEADS = 32
HEAD_SIZE = 80
ROTARY = 32
SMALL_SIZES = [{"TOKENS": 3}, {"TOKENS": 2}]
MORE_SIZES = [{"TOKENS": 32}]


def turned(x, cosine, sine):
    rotary, rest = x[..., :ROTARY], x[..., ROTARY:]
    first, second = rotary.chunk(2, dim=-1)
    rotary = torch.cat((first * cosine - second * sine, first * sine + second * cosine), dim=-1)
    return torch.cat((rotary, rest), dim=-1)


def rotary_packed_partial(packed, cosine, sine):
    query, key, value = packed.view(packed.shape[0], 3, HEADS, HEAD_SIZE).unbind(1)
    return turned(query, cosine, sine), turned(key, cosine, sine), value.contiguous()


def example_inputs():
    angles = torch.rand(TOKENS, 1, ROTARY // 2) * 6.28
    return torch.randn(TOKENS, 3 * HEADS * HEAD_SIZE, dtype=torch.float16), angles.cos().half(), angles.sin().half()
