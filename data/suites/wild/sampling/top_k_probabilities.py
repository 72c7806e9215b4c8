"""Probabilities of the fifty likeliest words of each row under its own temperature; all others are zero.

Occurs at the end of each step of generation. Memory-bound: a row of the vocabulary, a selection, a softmax.
"""

import torch

ROWS = 256
WORDS = 128256
KEPT = 50
SMALL_SIZES = [{"ROWS": 3, "WORDS": 509}, {"ROWS": 4, "WORDS": 256}]
MORE_SIZES = [{"ROWS": 1}]


def top_k_probabilities(logits, temperature):
    scaled = logits / temperature[:, None]
    least = scaled.topk(KEPT, dim=-1).values[:, -1:]
    return torch.softmax(scaled.masked_fill(scaled < least, float("-inf")), dim=-1)


def example_inputs():
    return torch.randn(ROWS, WORDS) * 3.0, 0.5 + torch.rand(ROWS)
