"""Merges two attentions over different keys by the logarithms of their sums.

Occurs after attention with split keys and with shared prefixes (cascade inference). Memory-bound.
"""

import torch

TOKENS = 16384
HEADS = 32
HEAD_SIZE = 128
SMALL_SIZES = [{"TOKENS": 5, "HEADS": 3, "HEAD_SIZE": 19}, {"TOKENS": 8, "HEADS": 2, "HEAD_SIZE": 32}]
MORE_SIZES = [{"TOKENS": 64}]


def merge_attention_states(first, first_sum, second, second_sum):
    total = torch.logaddexp(first_sum, second_sum)
    share = torch.exp(first_sum - total)[..., None]
    merged = share * first.float() + torch.exp(second_sum - total)[..., None] * second.float()
    return merged.to(first.dtype), total


def example_inputs():
    shape = (TOKENS, HEADS, HEAD_SIZE)
    return (
        torch.randn(shape, dtype=torch.bfloat16),
        torch.randn(shape[:2]) * 3.0,
        torch.randn(shape, dtype=torch.bfloat16),
        torch.randn(shape[:2]) * 3.0,
    )
