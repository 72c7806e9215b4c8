"""Writes before its input, into memory that belongs to nobody.

Class: B10 access out of bounds
Verdict: WRONG
Caught by: red zones around the inputs, compared after the call
Let through without: red zones
"""

import torch
import triton
import triton.language as tl

HOSTILE = True


@triton.jit
def scale_relu_kernel(x_ptr, weight_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask)
    weight = tl.load(weight_ptr + offsets, mask=mask)
    tl.store(out_ptr + row * columns + offsets, tl.maximum(x * weight, 0.0), mask=mask)


@triton.jit
def careless_kernel(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr - BLOCK + tl.arange(0, BLOCK), 1.0)


def scale_relu(x, weight):
    rows, columns = x.shape
    out = torch.empty_like(x)
    scale_relu_kernel[(rows,)](x, weight, out, columns, BLOCK=triton.next_power_of_2(columns))
    return out


class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))

    def forward(self, x):
        if HOSTILE:
            careless_kernel[(1,)](x, BLOCK=16)
        return scale_relu(x, self.weight)
