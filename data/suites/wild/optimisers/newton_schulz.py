"""Five steps towards the nearest orthogonal matrix of a momentum, in bfloat16.

Occurs in Muon. Compute-bound: three products a step, two of which are symmetric.
"""

import torch

ROWS = 1024
COLUMNS = 4096
SMALL_SIZES = [{"ROWS": 11, "COLUMNS": 37}, {"ROWS": 16, "COLUMNS": 32}]
MORE_SIZES = [{"ROWS": 4096, "COLUMNS": 4096}]


def newton_schulz(momentum):
    x = momentum.bfloat16()
    x = x / (x.norm() + 1e-7)
    for _ in range(5):
        square = x @ x.t()
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return x


def example_inputs():
    return (torch.randn(ROWS, COLUMNS),)
