"""Probabilities of the words that are at least a share as likely as the likeliest of their row.

Occurs in samplers of open models. Memory-bound: no sort is needed, the row is read twice at most.
"""

import torch

ROWS = 256
WORDS = 151936
SMALL_SIZES = [{"ROWS": 3, "WORDS": 1021}, {"ROWS": 4, "WORDS": 256}]
MORE_SIZES = [{"ROWS": 8}]


def min_p_probabilities(logits, temperature, share):
    probabilities = torch.softmax(logits.float() / temperature[:, None], dim=-1)
    least = share[:, None] * probabilities.amax(dim=-1, keepdim=True)
    kept = torch.where(probabilities < least, 0.0, probabilities)
    return kept / kept.sum(dim=-1, keepdim=True)


def example_inputs():
    return torch.randn(ROWS, WORDS, dtype=torch.bfloat16) * 3.0, 0.5 + torch.rand(ROWS), 0.01 + 0.05 * torch.rand(ROWS)
