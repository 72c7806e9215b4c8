"""Adds a gated branch to the residual, then norms and modulates the sum for the next branch.

Occurs between attention and feed-forward block of a diffusion transformer. Memory-bound: one pass, two outputs.
"""

import torch
import torch.nn.functional as F

BATCH = 4
TOKENS = 4096
HIDDEN = 3072
SMALL_SIZES = [{"BATCH": 2, "TOKENS": 5, "HIDDEN": 67}, {"BATCH": 1, "TOKENS": 8, "HIDDEN": 64}]


def gated_residual_norm(residual, branch, modulation):
    gate, shift, scale = modulation[:, None].chunk(3, dim=-1)
    residual = residual + gate * branch
    return residual, F.layer_norm(residual, (residual.shape[-1],), eps=1e-6) * (1 + scale) + shift


def example_inputs():
    return (
        torch.randn(BATCH, TOKENS, HIDDEN, dtype=torch.bfloat16),
        torch.randn(BATCH, TOKENS, HIDDEN, dtype=torch.bfloat16),
        torch.randn(BATCH, 3 * HIDDEN, dtype=torch.bfloat16),
    )
