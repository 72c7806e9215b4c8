"""A linear layer whose weights are int8 with one scale for each output, activations in bfloat16.

Occurs in weight-only quantised language models. Memory-bound by the weights where tokens are few, compute-bound where they are many.
"""

import torch

TOKENS = 16
INPUTS = 8192
OUTPUTS = 8192
SMALL_SIZES = [{"TOKENS": 5, "INPUTS": 67, "OUTPUTS": 37}, {"TOKENS": 16, "INPUTS": 64, "OUTPUTS": 32}]
MORE_SIZES = [{"TOKENS": 1}, {"TOKENS": 2048}]


def int8_weight_linear(x, weight, scale):
    return (x @ weight.to(x.dtype).t()) * scale


def example_inputs():
    return (
        torch.randn(TOKENS, INPUTS, dtype=torch.bfloat16),
        torch.randint(-127, 128, (OUTPUTS, INPUTS), dtype=torch.int8),
        (0.001 + 0.001 * torch.rand(OUTPUTS)).bfloat16(),
    )
