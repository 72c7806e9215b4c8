"""Gradients of an RMS norm with respect to its input and its weight.

Occurs in every training step of a decoder. Memory-bound; the weight's gradient is a sum over all tokens, the input's over each row.
"""

import torch

TOKENS = 8192
HIDDEN = 4096
SMALL_SIZES = [{"TOKENS": 7, "HIDDEN": 131}, {"TOKENS": 16, "HIDDEN": 64}]


def rms_norm_gradient(gradient, x, weight, scale):
    normed = x.float() * scale
    gradient = gradient.float()
    weighted = gradient * weight.float()
    by_input = scale * (weighted - normed * (weighted * normed).mean(dim=-1, keepdim=True))
    return by_input.to(x.dtype), (gradient * normed).sum(dim=0).to(weight.dtype)


def example_inputs():
    x = torch.randn(TOKENS, HIDDEN, dtype=torch.bfloat16)
    return (
        torch.randn(TOKENS, HIDDEN, dtype=torch.bfloat16),
        x,
        (1.0 + 0.2 * torch.randn(HIDDEN)).bfloat16(),
        torch.rsqrt(x.float().square().mean(dim=-1, keepdim=True) + 1e-6),
    )
