"""A feed-forward block with the square of a ReLU between its products.

Occurs in Primer, Nemotron-4 and modded-nanogpt. Compute-bound.
"""

import torch
import torch.nn.functional as F

TOKENS = 4096
HIDDEN = 3072
INNER = 12288
SMALL_SIZES = [{"TOKENS": 5, "HIDDEN": 37, "INNER": 67}, {"TOKENS": 16, "HIDDEN": 32, "INNER": 64}]


def squared_relu_block(x, first, second):
    return F.linear(F.relu(F.linear(x, first)).square(), second)


def example_inputs():
    return (
        torch.randn(TOKENS, HIDDEN, dtype=torch.bfloat16),
        torch.randn(INNER, HIDDEN, dtype=torch.bfloat16) * HIDDEN**-0.5,
        torch.randn(HIDDEN, INNER, dtype=torch.bfloat16) * INNER**-0.5,
    )
