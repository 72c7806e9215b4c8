"""Multiplies in one kernel and clips in another."""

import torch
import triton
import triton.language as tl


@triton.jit
def multiply_kernel(x_ptr, weight_ptr, out_ptr, n, columns, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    weight = tl.load(weight_ptr + offsets % columns, mask=mask)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * weight, mask=mask)


@triton.jit
def clip_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.maximum(tl.load(out_ptr + offsets, mask=mask), 0.0), mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))

    def forward(self, x):
        out = torch.empty_like(x)
        n = x.numel()
        grid = (triton.cdiv(n, 1024),)
        multiply_kernel[grid](x, self.weight, out, n, x.shape[1], BLOCK=1024)
        clip_kernel[grid](out, n, BLOCK=1024)
        return out
