"""Softmax of scaled scores under a mask of padding.

Occurs in attention that writes its scores (Megatron, BERT). Memory-bound: one read, one write.
"""

import torch

BATCH = 16
HEADS = 16
QUERIES = 512
KEYS = 512
SMALL_SIZES = [
    {"BATCH": 2, "HEADS": 3, "QUERIES": 5, "KEYS": 67},
    {"BATCH": 1, "HEADS": 2, "QUERIES": 8, "KEYS": 64},
]


def scaled_masked_softmax(scores, padding):
    scores = (scores.float() * 0.125).masked_fill(padding[:, None, None, :], -10000.0)
    return torch.softmax(scores, dim=-1).half()


def example_inputs():
    return torch.randn(BATCH, HEADS, QUERIES, KEYS, dtype=torch.float16) * 4.0, torch.rand(BATCH, KEYS) < 0.2
