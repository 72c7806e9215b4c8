"""Causal scaled dot-product attention of several heads.

Occurs in every block of a decoder. Compute-bound when the matrix of scores is never written to memory.
"""

import torch
import torch.nn.functional as F

BATCH = 8
HEADS = 16
SEQUENCE = 2048
HEAD_SIZE = 64


def attention(query, key, value):
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


def example_inputs():
    shape = (BATCH, HEADS, SEQUENCE, HEAD_SIZE)
    return torch.randn(shape), torch.randn(shape), torch.randn(shape)
