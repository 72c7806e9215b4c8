"""A linear layer whose weights are four bits, two to a byte, with a scale and a zero point for each group of inputs.

Occurs in AWQ and GPTQ models while they decode. Memory-bound by the packed weights: unpacked ones need not be written.
"""

import torch

TOKENS = 16
INPUTS = 4096
OUTPUTS = 11008
GROUP = 128
SMALL_SIZES = [{"TOKENS": 3, "INPUTS": 384, "OUTPUTS": 19}, {"TOKENS": 16, "INPUTS": 256, "OUTPUTS": 32}]
MORE_SIZES = [{"TOKENS": 1}, {"TOKENS": 1024}]


def int4_group_linear(x, packed, scales, zeros):
    low, high = packed & 15, packed >> 4
    codes = torch.stack((low, high), dim=-1).reshape(packed.shape[0], -1)
    groups = codes.reshape(codes.shape[0], -1, GROUP).to(x.dtype)
    weight = ((groups - zeros[..., None]) * scales[..., None]).reshape(codes.shape)
    return x @ weight.t()


def example_inputs():
    return (
        torch.randn(TOKENS, INPUTS, dtype=torch.float16),
        torch.randint(0, 256, (OUTPUTS, INPUTS // 2), dtype=torch.uint8),
        (0.005 + 0.01 * torch.rand(OUTPUTS, INPUTS // GROUP)).half(),
        torch.randint(4, 12, (OUTPUTS, INPUTS // GROUP)).half(),
    )
