"""Works on tiles of several rows."""

import torch
import triton
import triton.language as tl


@triton.jit
def tiled_kernel(x_ptr, weight_ptr, out_ptr, rows, columns, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    places = row[:, None] * columns + column[None, :]
    mask = (row < rows)[:, None] & (column < columns)[None, :]
    weight = tl.load(weight_ptr + column, mask=column < columns)
    x = tl.load(x_ptr + places, mask=mask)
    tl.store(out_ptr + places, tl.maximum(x * weight[None, :], 0.0), mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))

    def forward(self, x):
        out = torch.empty_like(x)
        rows, columns = x.shape
        grid = (triton.cdiv(rows, 8), triton.cdiv(columns, 64))
        tiled_kernel[grid](x, self.weight, out, rows, columns, BLOCK_M=8, BLOCK_N=64)
        return out
