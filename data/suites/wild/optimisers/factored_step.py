"""One step of Adafactor: second moments of rows and columns stand for those of all elements, and the update is clipped by its size.

Occurs in training of T5 and PaLM. Memory-bound: means over both dimensions, then over all, come before the update.
"""

import torch

ROWS = 4096
COLUMNS = 8192
SMALL_SIZES = [{"ROWS": 7, "COLUMNS": 67}, {"ROWS": 8, "COLUMNS": 64}]


def factored_step(parameter, gradient, rows, columns):
    squared = gradient.square() + 1e-30
    rows = 0.99 * rows + 0.01 * squared.mean(dim=1)
    columns = 0.99 * columns + 0.01 * squared.mean(dim=0)
    update = gradient * (rows / rows.mean()).rsqrt()[:, None] * columns.rsqrt()[None]
    update = update / update.square().mean().sqrt().clamp(min=1.0)
    return parameter - 1e-2 * update, rows, columns


def example_inputs():
    return (
        torch.randn(ROWS, COLUMNS),
        torch.randn(ROWS, COLUMNS) * 0.1,
        torch.rand(ROWS) * 0.01 + 0.005,
        torch.rand(COLUMNS) * 0.01 + 0.005,
    )
