"""Adds weights to the bin that each value falls into.

Occurs in calibration, in tree boosting and in GPU MODE's histogram problem. Memory-bound with many additions to few addresses.
"""

import torch

VALUES = 16777216
BINS = 256
SMALL_SIZES = [{"VALUES": 1021, "BINS": 32}, {"VALUES": 2048, "BINS": 64}]


def weighted_histogram(counts, values, weights):
    bins = (values * counts.shape[0]).long().clamp(0, counts.shape[0] - 1)
    return counts.scatter_add(0, bins, weights)


def example_inputs():
    return torch.rand(BINS) * 100.0, torch.rand(VALUES), torch.rand(VALUES)
