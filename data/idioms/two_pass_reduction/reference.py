"""Norms of a few very long rows."""

import torch

ROWS = 8
COLUMNS = 4194304
SMALL_SIZES = [{"ROWS": 3, "COLUMNS": 3000}, {"ROWS": 1, "COLUMNS": 5}]


def row_norm(x):
    return torch.linalg.vector_norm(x, dim=-1)


def example_inputs():
    return (torch.randn(ROWS, COLUMNS),)
