"""Probabilities of the likeliest words that together reach a share of each row; all others are zero.

Occurs at the end of each step of generation (nucleus sampling). Memory-bound: sort, softmax and running sum of a row of the vocabulary.
"""

import torch

ROWS = 64
WORDS = 128256
SMALL_SIZES = [{"ROWS": 3, "WORDS": 257}, {"ROWS": 4, "WORDS": 128}]
MORE_SIZES = [{"ROWS": 1}]


def top_p_probabilities(logits, share):
    ordered, words = logits.sort(dim=-1, descending=True)
    probabilities = torch.softmax(ordered, dim=-1)
    before = probabilities.cumsum(dim=-1) - probabilities
    probabilities = probabilities.masked_fill(before > share[:, None], 0.0)
    probabilities = probabilities / probabilities.sum(dim=-1, keepdim=True)
    return torch.zeros_like(logits).scatter(1, words, probabilities)


def example_inputs():
    return torch.randn(ROWS, WORDS) * 3.0, 0.7 + 0.25 * torch.rand(ROWS)
