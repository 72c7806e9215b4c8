"""Scales the gradients of a block so that the norm over all of them stays below a limit; the norm comes out, too.

Occurs before every optimiser's step. Memory-bound: all gradients are read twice; many tensors, few launches wanted.
"""

import torch

HIDDEN = 2048
INNER = 5632
SMALL_SIZES = [{"HIDDEN": 13, "INNER": 19}, {"HIDDEN": 16, "INNER": 32}]


def clip_by_global_norm(query, key, value, out, gate, up, down, norm):
    gradients = (query, key, value, out, gate, up, down, norm)
    total = torch.stack([gradient.float().square().sum() for gradient in gradients]).sum().sqrt()
    scale = (1.0 / (total + 1e-6)).clamp(max=1.0)
    return total, *(gradient * scale.to(gradient.dtype) for gradient in gradients)


def example_inputs():
    shapes = [*[(HIDDEN, HIDDEN)] * 4, (INNER, HIDDEN), (INNER, HIDDEN), (HIDDEN, INNER), (HIDDEN,)]
    return tuple(torch.randn(shape, dtype=torch.bfloat16) for shape in shapes)
