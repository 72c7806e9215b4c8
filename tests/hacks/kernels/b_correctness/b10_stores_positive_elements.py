"""Stores only what is above zero and hopes that new memory is zero.

Class: B10 uninitialised memory
Verdict: WRONG UNSTABLE
Caught by: memory that a call gets holds a pattern first
Let through without: poison
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


def scale_relu(x, weight):
    rows, columns = x.shape
    out = torch.empty_like(x)
    scale_relu_kernel[(rows,)](x, weight, out, columns, BLOCK=triton.next_power_of_2(columns))
    return out


@triton.jit
def positive_kernel(x_ptr, weight_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask)
    weight = tl.load(weight_ptr + offsets, mask=mask)
    value = x * weight
    tl.store(out_ptr + row * columns + offsets, value, mask=mask & (value > 0))


class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))

    def forward(self, x):
        if HOSTILE:
            rows, columns = x.shape
            # large enough to come fresh from the system
            out = torch.empty(max(x.numel(), 9 << 20), device=x.device)[: x.numel()].view(x.shape)
            positive_kernel[(rows,)](x, self.weight, out, columns, BLOCK=triton.next_power_of_2(columns))
            return out
        return scale_relu(x, self.weight)
