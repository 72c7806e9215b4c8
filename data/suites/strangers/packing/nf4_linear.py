"""A linear layer whose weights are sixteen normal-float levels, two to a byte, with absmax scales by block (QLoRA), and an adapter."""

import torch
import torch.nn as nn
import torch.nn.functional as F

TOKENS = 1024
IN = 4096
OUT = 4096
BLOCK = 64
RANK = 16
SMALL_SIZES = [{"TOKENS": 3, "IN": 16, "OUT": 6, "BLOCK": 8, "RANK": 2}, {"TOKENS": 16, "IN": 64, "OUT": 32, "BLOCK": 16, "RANK": 16}]


class Model(nn.Module):
    def __init__(self, n_in, n_out, block, rank):
        super().__init__()
        levels = [
            -1.0,
            -0.6962,
            -0.5251,
            -0.3949,
            -0.2844,
            -0.1848,
            -0.0911,
            0.0,
            0.0796,
            0.1609,
            0.2461,
            0.3379,
            0.4407,
            0.5626,
            0.723,
            1.0,
        ]
        self.register_buffer("code", torch.tensor(levels))
        self.register_buffer("packed", torch.randint(0, 256, (n_out * n_in // 2, 1), dtype=torch.uint8))
        self.register_buffer("absmax", torch.rand(n_out * n_in // block) * 0.05)
        self.A = nn.Parameter(torch.randn(rank, n_in, dtype=torch.bfloat16) * n_in**-0.5)
        self.B = nn.Parameter(torch.randn(n_out, rank, dtype=torch.bfloat16) * 0.01)
        self.shape, self.block = (n_out, n_in), block

    def forward(self, x):
        high = self.packed >> 4
        low = self.packed & 0xF
        index = torch.cat([high, low], dim=1).flatten().int()
        weight = self.code[index].view(-1, self.block) * self.absmax[:, None]
        weight = weight.view(self.shape).to(x.dtype)
        return F.linear(x, weight) + F.linear(F.linear(x, self.A), self.B) * 2.0


def get_inputs():
    return [torch.randn(TOKENS, IN, dtype=torch.bfloat16)]


def get_init_inputs():
    return [IN, OUT, BLOCK, RANK]
