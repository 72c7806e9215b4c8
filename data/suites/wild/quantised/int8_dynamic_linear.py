"""A linear layer in int8: each token is quantised by its largest element, the product is rescaled by token and by output.

Occurs in SmoothQuant and LLM.int8-like inference. Compute-bound at many tokens, where integer tensor cores are twice as fast.
"""

import torch

TOKENS = 2048
INPUTS = 4096
OUTPUTS = 4096
SMALL_SIZES = [{"TOKENS": 5, "INPUTS": 67, "OUTPUTS": 37}, {"TOKENS": 16, "INPUTS": 64, "OUTPUTS": 32}]
MORE_SIZES = [{"TOKENS": 32}]


def int8_dynamic_linear(x, weight, weight_scale, bias):
    wide = x.float()
    scale = wide.abs().amax(dim=-1, keepdim=True).clamp(min=1e-6) / 127.0
    quantised = torch.round(wide / scale).clamp(-127, 127)
    total = quantised @ weight.float().t()
    return (total * scale * weight_scale + bias).to(x.dtype)


def example_inputs():
    return (
        torch.randn(TOKENS, INPUTS, dtype=torch.float16),
        torch.randint(-127, 128, (OUTPUTS, INPUTS), dtype=torch.int8),
        0.0005 + 0.0005 * torch.rand(OUTPUTS),
        torch.randn(OUTPUTS),
    )
