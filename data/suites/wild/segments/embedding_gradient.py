"""Adds the gradients of all tokens to what the rows of their words have from earlier steps.

Occurs in the backward of every embedding. Memory-bound: rows of frequent words are added to many times.
"""

import torch

TOKENS = 32768
WORDS = 32000
WIDTH = 1024
SMALL_SIZES = [{"TOKENS": 37, "WORDS": 11, "WIDTH": 19}, {"TOKENS": 64, "WORDS": 32, "WIDTH": 32}]


def embedding_gradient(total, gradient, tokens):
    return total.index_put((tokens,), gradient.float(), accumulate=True)


def example_inputs():
    # a few words are most of a text
    return torch.randn(WORDS, WIDTH), torch.randn(TOKENS, WIDTH, dtype=torch.bfloat16), (torch.rand(TOKENS).pow(3) * WORDS).long()
