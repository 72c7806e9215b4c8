"""Adds a branch to the residual and norms the sum; both come out.

Occurs twice in every layer of a decoder that is served (vLLM's fused kernel). Memory-bound: one pass.
"""

import torch

TOKENS = 4096
HIDDEN = 8192
SMALL_SIZES = [{"TOKENS": 5, "HIDDEN": 257}, {"TOKENS": 8, "HIDDEN": 128}]
MORE_SIZES = [{"TOKENS": 1}, {"TOKENS": 64, "HIDDEN": 7168}]


def residual_rms_norm(x, residual, weight):
    residual = (x.float() + residual.float()).to(x.dtype)
    wide = residual.float()
    normed = wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
    return normed.to(x.dtype) * weight, residual


def example_inputs():
    return (
        torch.randn(TOKENS, HIDDEN, dtype=torch.bfloat16),
        torch.randn(TOKENS, HIDDEN, dtype=torch.bfloat16),
        (1.0 + 0.2 * torch.randn(HIDDEN)).bfloat16(),
    )
