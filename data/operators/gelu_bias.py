"""GELU (the tanh form) of an activation plus a bias of its columns.

Occurs between the two products of a GPT-2 feed-forward block. Memory-bound: a chain of pointwise operations.
"""

import torch
import torch.nn.functional as F

TOKENS = 4096
HIDDEN = 11008


def gelu_bias(x, bias):
    return F.gelu(x + bias, approximate="tanh")


def example_inputs():
    return torch.randn(TOKENS, HIDDEN), torch.randn(HIDDEN) * 0.5
