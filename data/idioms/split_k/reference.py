"""A product with a long sum and a small result."""

import torch

M = 16
N = 256
K = 65536
SMALL_SIZES = [{"M": 5, "N": 40, "K": 200}, {"M": 16, "N": 16, "K": 64}]


def product(x, w):
    return x @ w


def example_inputs():
    return torch.randn(M, K), torch.randn(K, N)
