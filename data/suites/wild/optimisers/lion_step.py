"""One step of Lion: the sign of a blend of gradient and momentum, decay, the new momentum.

Occurs in training of vision and language models. Memory-bound: three bfloat16 tensors in, two out.
"""

import torch

ROWS = 8192
COLUMNS = 8192
SMALL_SIZES = [{"ROWS": 7, "COLUMNS": 67}, {"ROWS": 8, "COLUMNS": 64}]


def lion_step(parameter, gradient, momentum):
    update = torch.sign(0.9 * momentum.float() + 0.1 * gradient.float())
    new = parameter.float() * (1.0 - 1e-2) - 1e-2 * update
    return new.to(parameter.dtype), (0.99 * momentum.float() + 0.01 * gradient.float()).to(momentum.dtype)


def example_inputs():
    shape = (ROWS, COLUMNS)
    return torch.randn(shape, dtype=torch.bfloat16), torch.randn(shape, dtype=torch.bfloat16), torch.randn(shape, dtype=torch.bfloat16)
