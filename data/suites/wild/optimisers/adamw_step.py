"""One step of AdamW: both moments, their corrections, weight decay, the new parameter.

Occurs at every training step. Memory-bound: four tensors in, three out, all in one pass.
"""

import torch

PARAMETERS = 16777216
SMALL_SIZES = [{"PARAMETERS": 1021}, {"PARAMETERS": 1024}]


def adamw_step(parameter, gradient, first, second, step):
    first = 0.9 * first + 0.1 * gradient
    second = 0.95 * second + 0.05 * gradient * gradient
    unbiased = (second / (1.0 - 0.95**step)).sqrt() + 1e-8
    return parameter * (1.0 - 3e-4 * 0.1) - 3e-4 * (first / (1.0 - 0.9**step)) / unbiased, first, second


def example_inputs():
    return (
        torch.randn(PARAMETERS),
        torch.randn(PARAMETERS) * 0.1,
        torch.randn(PARAMETERS) * 0.05,
        torch.rand(PARAMETERS) * 0.01 + 1e-4,
        torch.randint(1, 1000, (1,)).float(),
    )
