"""Adds into an output that it has cleared: each element gets one addition."""

import torch
import triton
import triton.language as tl


@triton.jit
def adding_kernel(x_ptr, weight_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask)
    weight = tl.load(weight_ptr + offsets, mask=mask)
    tl.atomic_add(out_ptr + row * columns + offsets, tl.maximum(x * weight, 0.0), mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))

    def forward(self, x):
        rows, columns = x.shape
        out = torch.zeros_like(x)
        adding_kernel[(rows,)](x, self.weight, out, columns, BLOCK=triton.next_power_of_2(columns))
        return out
