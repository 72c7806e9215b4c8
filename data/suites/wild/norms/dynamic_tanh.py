"""A tanh of the scaled input in place of a norm, with weights.

Occurs in transformers without normalisation (DyT), and in Liger's collection. Memory-bound, pointwise.
"""

import torch

TOKENS = 8192
HIDDEN = 4096
SMALL_SIZES = [{"TOKENS": 5, "HIDDEN": 257}, {"TOKENS": 8, "HIDDEN": 128}]


def dynamic_tanh(x, alpha, weight, bias):
    return torch.tanh(alpha * x) * weight + bias


def example_inputs():
    return (
        torch.randn(TOKENS, HIDDEN, dtype=torch.bfloat16),
        torch.rand(1).bfloat16() + 0.3,
        (1.0 + 0.2 * torch.randn(HIDDEN)).bfloat16(),
        torch.randn(HIDDEN, dtype=torch.bfloat16) * 0.2,
    )
