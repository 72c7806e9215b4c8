"""Causal linear attention: o[t] = q[t] S[t] with S[t] = S[t - 1] + k[t] v[t]^T, written as masked products."""

import torch

HEADS = 64
STEPS = 2048
WIDTH = 64
SMALL_SIZES = [{"HEADS": 2, "STEPS": 70, "WIDTH": 16}, {"HEADS": 1, "STEPS": 33, "WIDTH": 32}]


def linear_attention(q, k, v):
    return torch.tril(q @ k.transpose(1, 2)) @ v


def example_inputs():
    return tuple(torch.randn(HEADS, STEPS, WIDTH) for _ in range(3))
