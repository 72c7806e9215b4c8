"""One step of LAMB: Adam's update of a layer, scaled by the layer's norm over the update's norm, and the slow average of the weights.

Occurs in training with very large batches. Memory-bound: two norms over all elements stand between two passes.
"""

import torch

ROWS = 4096
COLUMNS = 4096
SMALL_SIZES = [{"ROWS": 7, "COLUMNS": 67}, {"ROWS": 8, "COLUMNS": 64}]


def trust_ratio_step(parameter, gradient, first, second, average):
    first = 0.9 * first + 0.1 * gradient
    second = 0.999 * second + 0.001 * gradient.square()
    update = first / (second.sqrt() + 1e-6) + 0.01 * parameter
    own, change = torch.linalg.vector_norm(parameter), torch.linalg.vector_norm(update)
    ratio = torch.where((own > 0) & (change > 0), own / change, torch.ones_like(own))
    parameter = parameter - 1e-3 * ratio * update
    return parameter, first, second, average.lerp(parameter, 0.001)


def example_inputs():
    shape = (ROWS, COLUMNS)
    return (
        torch.randn(shape),
        torch.randn(shape) * 0.1,
        torch.randn(shape) * 0.05,
        torch.rand(shape) * 0.01 + 1e-4,
        torch.randn(shape),
    )
