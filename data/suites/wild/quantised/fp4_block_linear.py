"""A linear layer whose weights are floats of four bits, two to a byte, with a power of two for each block of 32 (MXFP4).

Occurs in open models that are served with such weights. Memory-bound while tokens are few: a byte brings two weights.
"""

import torch

TOKENS = 64
IN = 2880
OUT = 5760
SMALL_SIZES = [{"TOKENS": 5, "IN": 64, "OUT": 12}, {"TOKENS": 8, "IN": 128, "OUT": 16}]
CODES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)


def fp4_block_linear(x, codes, scales, bias):
    table = torch.tensor(CODES, dtype=x.dtype, device=x.device)
    weight = torch.stack((table[(codes & 15).long()], table[(codes >> 4).long()]), dim=-1).flatten(-2)
    weight = torch.ldexp(weight, scales.int().unsqueeze(-1) - 127).flatten(-2)
    return torch.nn.functional.linear(x, weight.to(x.dtype), bias)


def example_inputs():
    codes = torch.randint(0, 256, (OUT, IN // 32, 16), dtype=torch.uint8)
    scales = torch.randint(115, 121, (OUT, IN // 32), dtype=torch.uint8)
    return torch.randn(TOKENS, IN).bfloat16(), codes, scales, torch.randn(OUT).bfloat16()
