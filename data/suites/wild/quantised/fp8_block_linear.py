"""A product of float8 operands with a scale for each 1 by 128 block of activations and each 128 by 128 block of weights.

Occurs in every linear layer of DeepSeek-V3. Compute-bound; scales change along the sum, so each block is added up by itself.
"""

import torch

TOKENS = 1024
INPUTS = 7168
OUTPUTS = 2048
BLOCK = 128
SMALL_SIZES = [{"TOKENS": 3, "INPUTS": 128, "OUTPUTS": 128}, {"TOKENS": 16, "INPUTS": 256, "OUTPUTS": 128}]
MORE_SIZES = [{"TOKENS": 16}, {"TOKENS": 8192}]


def fp8_block_linear(x, x_scale, weight, weight_scale):
    wide = x.float() * x_scale.repeat_interleave(BLOCK, dim=1)
    spread = weight_scale.repeat_interleave(BLOCK, dim=0).repeat_interleave(BLOCK, dim=1)
    return (wide @ (weight.float() * spread).t()).to(torch.bfloat16)


def example_inputs():
    return (
        torch.randn(TOKENS, INPUTS).to(torch.float8_e4m3fn),
        0.5 + torch.rand(TOKENS, INPUTS // BLOCK),
        torch.randn(OUTPUTS, INPUTS).to(torch.float8_e4m3fn),
        0.5 + torch.rand(OUTPUTS // BLOCK, INPUTS // BLOCK),
    )
