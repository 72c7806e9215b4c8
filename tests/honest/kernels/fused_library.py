"""Uses one fused operator of PyTorch after another."""

import torch
import triton
import triton.language as tl


class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))

    def forward(self, x):
        return torch.clamp_min(torch.addcmul(torch.zeros_like(x), x, self.weight), 0.0)
