"""A weight-decomposed adapter (DoRA): base and low-rank weights joined, columns scaled to learnt magnitudes."""

import torch
import torch.nn as nn
import torch.nn.functional as F

TOKENS = 2048
IN = 4096
OUT = 4096
RANK = 32
SMALL_SIZES = [{"TOKENS": 3, "IN": 9, "OUT": 7, "RANK": 2}, {"TOKENS": 16, "IN": 32, "OUT": 32, "RANK": 16}]


class Model(nn.Module):
    def __init__(self, n_in, n_out, rank, alpha=64.0):
        super().__init__()
        self.base = nn.Linear(n_in, n_out, bias=True, dtype=torch.bfloat16)
        self.lora_a = nn.Parameter(torch.randn(rank, n_in, dtype=torch.bfloat16) * n_in**-0.5)
        self.lora_b = nn.Parameter(torch.randn(n_out, rank, dtype=torch.bfloat16) * 0.02)
        self.magnitude = nn.Parameter(torch.rand(n_out, dtype=torch.bfloat16) + 0.5)
        self.scaling = alpha / rank

    def forward(self, x):
        merged = self.base.weight + self.scaling * (self.lora_b @ self.lora_a)
        norm = torch.linalg.norm(merged.float(), dim=1).to(x.dtype)
        factor = (self.magnitude / norm).view(1, -1)
        out = F.linear(x, self.base.weight) * factor
        out = out + factor * F.linear(F.linear(x, self.lora_a), self.lora_b) * self.scaling
        return out + self.base.bias


def get_inputs():
    return [torch.randn(TOKENS, IN, dtype=torch.bfloat16)]


def get_init_inputs():
    return [IN, OUT, RANK]
