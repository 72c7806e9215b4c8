"""Learnt places of a vision transformer stretched to another grid by bicubic interpolation, added behind the class token with registers."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 32
OLD = 16
ROWS = 24
COLUMNS = 32
WIDTH = 1024
REGISTERS = 4
SMALL_SIZES = [
    {"BATCH": 2, "OLD": 3, "ROWS": 4, "COLUMNS": 5, "WIDTH": 6, "REGISTERS": 1},
    {"BATCH": 1, "OLD": 4, "ROWS": 6, "COLUMNS": 4, "WIDTH": 16, "REGISTERS": 2},
]


class Model(nn.Module):
    def __init__(self, old, width, registers):
        super().__init__()
        self.cls = nn.Parameter(torch.randn(1, 1, width))
        self.registers = nn.Parameter(torch.randn(1, registers, width))
        self.positions = nn.Parameter(torch.randn(1, 1 + old * old, width))
        self.to(torch.float16)
        self.old = old

    def forward(self, patches):
        B, rows, columns, width = patches.shape
        first, grid = self.positions[:, :1], self.positions[:, 1:]
        if rows * columns != grid.shape[1] or rows != columns:
            grid = grid.float().reshape(1, self.old, self.old, width).permute(0, 3, 1, 2)
            grid = F.interpolate(grid, size=(rows, columns), mode="bicubic", align_corners=False)
            grid = grid.permute(0, 2, 3, 1).flatten(1, 2).to(patches.dtype)
        x = torch.cat([self.cls.expand(B, -1, -1), patches.flatten(1, 2)], dim=1)
        x = x + torch.cat([first, grid], dim=1)
        return torch.cat([x[:, :1], self.registers.expand(B, -1, -1), x[:, 1:]], dim=1)


def get_inputs():
    return [torch.randn(BATCH, ROWS, COLUMNS, WIDTH, dtype=torch.float16)]


def get_init_inputs():
    return [OLD, WIDTH, REGISTERS]
