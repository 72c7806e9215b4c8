"""One step of Adam on float32 parameters with bfloat16 gradients, scaled down first; the model's bfloat16 copy comes out, too.

Occurs in mixed-precision training. Memory-bound: formats differ, the pass is one.
"""

import torch

ROWS = 8192
COLUMNS = 4096
SMALL_SIZES = [{"ROWS": 7, "COLUMNS": 67}, {"ROWS": 8, "COLUMNS": 64}]


def mixed_adam_step(master, gradient, first, second, scale):
    gradient = gradient.float() * scale
    first = first.lerp(gradient, 0.1)
    second = second * 0.98 + gradient.square() * 0.02
    master = master - 1e-3 * first / (second.sqrt() + 1e-6)
    return master, master.bfloat16(), first, second


def example_inputs():
    shape = (ROWS, COLUMNS)
    return (
        torch.randn(shape),
        torch.randn(shape, dtype=torch.bfloat16),
        torch.randn(shape) * 0.05,
        torch.rand(shape) * 0.01 + 1e-4,
        torch.rand(1) * 0.1 + 0.05,
    )
