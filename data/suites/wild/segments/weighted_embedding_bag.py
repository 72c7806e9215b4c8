"""Weighted sums of a table's rows, twenty rows to each sample.

Occurs in recommendation models (DLRM) for features of several values. Memory-bound: random rows of a large table.
"""

import torch
import torch.nn.functional as F

ROWS = 400000
WIDTH = 128
BAGS = 16384
LENGTH = 20
SMALL_SIZES = [{"ROWS": 31, "WIDTH": 19, "BAGS": 5, "LENGTH": 3}, {"ROWS": 64, "WIDTH": 32, "BAGS": 8, "LENGTH": 4}]
MORE_SIZES = [{"WIDTH": 16}, {"BAGS": 512, "LENGTH": 100}]


def weighted_embedding_bag(indices, table, weights):
    return F.embedding_bag(indices, table, mode="sum", per_sample_weights=weights)


def example_inputs():
    return torch.randint(0, ROWS, (BAGS, LENGTH)), torch.randn(ROWS, WIDTH), torch.rand(BAGS, LENGTH)
