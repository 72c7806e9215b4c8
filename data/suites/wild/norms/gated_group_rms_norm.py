"""Gates by SiLU, then an RMS norm of each group of channels.

Occurs before the output projection of Mamba 2 and of gated linear attentions. Memory-bound: one pass.
"""

import torch
import torch.nn.functional as F

TOKENS = 8192
GROUPS = 8
WIDTH = 512
SMALL_SIZES = [{"TOKENS": 5, "GROUPS": 3, "WIDTH": 37}, {"TOKENS": 8, "GROUPS": 2, "WIDTH": 32}]


def gated_group_rms_norm(x, gate, weight):
    gated = x.float() * F.silu(gate.float())
    grouped = gated.unflatten(-1, weight.shape)
    normed = grouped * torch.rsqrt(grouped.square().mean(dim=-1, keepdim=True) + 1e-5)
    return (normed * weight.float()).flatten(-2).to(x.dtype)


def example_inputs():
    shape = (TOKENS, GROUPS * WIDTH)
    return (
        torch.randn(shape, dtype=torch.bfloat16),
        torch.randn(shape, dtype=torch.bfloat16),
        (1.0 + 0.2 * torch.randn(GROUPS, WIDTH)).bfloat16(),
    )
