"""Rotary embedding of neighbouring pairs, written as a product of complex numbers.

Occurs in the published code of Llama and in GPT-J. Memory-bound: each element is read and written once; the turn is done in float32.
"""

import torch

BATCH = 4
SEQUENCE = 4096
HEADS = 32
HEAD_SIZE = 128
SMALL_SIZES = [
    {"BATCH": 2, "SEQUENCE": 7, "HEADS": 3, "HEAD_SIZE": 18},
    {"BATCH": 1, "SEQUENCE": 16, "HEADS": 2, "HEAD_SIZE": 32},
]
MORE_SIZES = [{"BATCH": 64, "SEQUENCE": 1}, {"BATCH": 1, "SEQUENCE": 8192}]


def rotary_complex(x, angles):
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    turns = torch.polar(torch.ones_like(angles), angles)[None, :, None, :]
    return torch.view_as_real(pairs * turns).flatten(3).type_as(x)


def example_inputs():
    return (
        torch.randn(BATCH, SEQUENCE, HEADS, HEAD_SIZE, dtype=torch.bfloat16),
        torch.rand(SEQUENCE, HEAD_SIZE // 2) * 6.28,
    )
