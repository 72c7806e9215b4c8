"""Attention of a single query over a long cache of keys and values."""

import torch

HEADS = 32
KEYS = 16384
WIDTH = 128
SMALL_SIZES = [{"HEADS": 2, "KEYS": 300, "WIDTH": 32}, {"HEADS": 1, "KEYS": 17, "WIDTH": 16}]


def decode(q, k, v):
    scores = (k @ q.unsqueeze(-1)).squeeze(-1) / q.shape[-1] ** 0.5
    return (torch.softmax(scores, dim=-1).unsqueeze(1) @ v).squeeze(1)


def example_inputs():
    return torch.randn(HEADS, WIDTH), torch.randn(HEADS, KEYS, WIDTH), torch.randn(HEADS, KEYS, WIDTH)
