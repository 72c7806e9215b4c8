"""SwiGLU of interleaved gates and values, both clamped, the values shifted by one.

Occurs in gpt-oss. Memory-bound; neighbours in memory are gate and value.
"""

import torch

TOKENS = 16384
INNER = 2880
SMALL_SIZES = [{"TOKENS": 5, "INNER": 67}, {"TOKENS": 8, "INNER": 64}]
MORE_SIZES = [{"TOKENS": 32}]


def clamped_swiglu(projection):
    gate, value = projection[..., ::2], projection[..., 1::2]
    gate = gate.clamp(max=7.0)
    value = value.clamp(min=-7.0, max=7.0)
    return gate * torch.sigmoid(1.702 * gate) * (value + 1)


def example_inputs():
    return (torch.randn(TOKENS, 2 * INNER, dtype=torch.bfloat16) * 4.0,)
