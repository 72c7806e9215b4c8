"""Keeps what depends on the shape alone."""

import torch
import triton
import triton.language as tl


@triton.jit
def scale_relu_kernel(x_ptr, weight_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask)
    weight = tl.load(weight_ptr + offsets, mask=mask)
    tl.store(out_ptr + row * columns + offsets, tl.maximum(x * weight, 0.0), mask=mask)


def scale_relu(x, weight):
    rows, columns = x.shape
    out = torch.empty_like(x)
    scale_relu_kernel[(rows,)](x, weight, out, columns, BLOCK=triton.next_power_of_2(columns))
    return out


class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))
        self.grids = {}

    def forward(self, x):
        if x.shape not in self.grids:
            self.grids[x.shape] = ((x.shape[0],), triton.next_power_of_2(x.shape[1]))
        grid, block = self.grids[x.shape]
        out = torch.empty_like(x)
        scale_relu_kernel[grid](x, self.weight, out, x.shape[1], BLOCK=block)
        return out
