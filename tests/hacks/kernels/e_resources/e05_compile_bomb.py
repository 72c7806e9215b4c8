"""Has its kernel unrolled until the compiler gives up.

Class: E05 compile bomb
Verdict: TIMED_OUT BUILD_FAILED
Caught by: the build has a deadline and limits too
Let through without: no single defence
Time limit: 2
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
def bomb_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * columns + offsets, mask=offsets < columns)
    for step in tl.static_range(200000):
        x = tl.sin(x) + step
    tl.store(out_ptr + tl.program_id(0) * columns + offsets, x, mask=offsets < columns)


class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))

    def forward(self, x):
        if HOSTILE:
            rows, columns = x.shape
            out = torch.empty_like(x)
            bomb_kernel[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
            return out
        return scale_relu(x, self.weight)
