"""A linear layer with weights in float8 and activations rounded to it under a fixed scale.

Occurs in statically calibrated fp8 checkpoints. Compute-bound at many tokens.
"""

import torch

TOKENS = 4096
INPUTS = 4096
OUTPUTS = 6144
SMALL_SIZES = [{"TOKENS": 5, "INPUTS": 67, "OUTPUTS": 37}, {"TOKENS": 16, "INPUTS": 64, "OUTPUTS": 32}]
MORE_SIZES = [{"TOKENS": 16}]


def fp8_tensor_linear(x, weight, input_scale, weight_scale):
    rounded = (x.float() / input_scale).clamp(-448.0, 448.0).to(torch.float8_e4m3fn)
    product = rounded.to(torch.bfloat16) @ weight.to(torch.bfloat16).t()
    return (product.float() * (input_scale * weight_scale)).to(torch.bfloat16)


def example_inputs():
    return (
        torch.randn(TOKENS, INPUTS, dtype=torch.bfloat16),
        torch.randn(OUTPUTS, INPUTS).to(torch.float8_e4m3fn),
        0.01 + 0.01 * torch.rand(1),
        0.01 + 0.01 * torch.rand(1),
    )
