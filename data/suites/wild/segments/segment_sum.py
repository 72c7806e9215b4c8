"""Adds each row to the total of its segment; segment ids come sorted.

Occurs in graph readout, in ragged batches and in grouped statistics. Memory-bound: one read of the rows.
"""

import torch

ROWS = 262144
SEGMENTS = 8192
WIDTH = 128
SMALL_SIZES = [{"ROWS": 37, "SEGMENTS": 5, "WIDTH": 19}, {"ROWS": 64, "SEGMENTS": 8, "WIDTH": 32}]
MORE_SIZES = [{"SEGMENTS": 64}]


def segment_sum(totals, x, segments):
    return totals.index_add(0, segments, x)


def example_inputs():
    return torch.randn(SEGMENTS, WIDTH), torch.randn(ROWS, WIDTH), torch.randint(0, SEGMENTS, (ROWS,)).sort().values
