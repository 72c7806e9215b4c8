"""A product with weights of four bits, two in each byte, and one scale a row."""

import torch

M = 16
N = 4096
K = 4096
SMALL_SIZES = [{"M": 5, "N": 40, "K": 72}, {"M": 1, "N": 16, "K": 32}]


def product(x, packed, scale):
    low, high = (packed & 15).float() - 8, (packed >> 4).float() - 8
    w = torch.stack([low, high], dim=-1).reshape(packed.shape[0], -1) * scale.unsqueeze(1)
    return x @ w.t()


def example_inputs():
    return torch.randn(M, K), torch.randint(0, 256, (N, K // 2), dtype=torch.uint8), torch.rand(N)
