"""A linear layer of which only some blocks are there: blocks by row and column lists, partial products added by row."""

import torch
import torch.nn as nn

TOKENS = 2048
BLOCK = 64
ROWS = 32
COLUMNS = 32
KEPT = 256
SMALL_SIZES = [
    {"TOKENS": 3, "BLOCK": 4, "ROWS": 3, "COLUMNS": 2, "KEPT": 4},
    {"TOKENS": 16, "BLOCK": 16, "ROWS": 2, "COLUMNS": 4, "KEPT": 6},
]


class Model(nn.Module):
    def __init__(self, block, rows, columns, kept):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(kept, block, block, dtype=torch.float16) * (block * kept / rows) ** -0.5)
        self.register_buffer("row", torch.randint(0, rows, (kept,)))
        self.register_buffer("column", torch.randint(0, columns, (kept,)))
        self.rows, self.columns, self.block = rows, columns, block

    def forward(self, x):
        tiles = x.view(-1, self.columns, self.block).transpose(0, 1)
        partial = torch.bmm(tiles[self.column], self.weight.transpose(1, 2))
        out = torch.zeros(self.rows, x.shape[0], self.block, dtype=torch.float32, device=x.device)
        out.index_add_(0, self.row, partial.float())
        return torch.nn.functional.gelu(out.transpose(0, 1).reshape(x.shape[0], -1).to(x.dtype))


def get_inputs():
    return [torch.randn(TOKENS, COLUMNS * BLOCK, dtype=torch.float16)]


def get_init_inputs():
    return [BLOCK, ROWS, COLUMNS, KEPT]
