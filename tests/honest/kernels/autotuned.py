"""Chooses its block among several that are timed.

Runs on: gpu
"""

import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({"BLOCK": block}, num_warps=warps) for block in (256, 1024) for warps in (4, 8)], key=["n"])
@triton.jit
def tuned_kernel(x_ptr, weight_ptr, out_ptr, n, columns, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    weight = tl.load(weight_ptr + offsets % columns, mask=mask)
    tl.store(out_ptr + offsets, tl.maximum(x * weight, 0.0), mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))

    def forward(self, x):
        rows, columns = x.shape
        out = torch.empty_like(x)
        tuned_kernel[lambda given: (triton.cdiv(x.numel(), given["BLOCK"]),)](x, self.weight, out, x.numel(), columns)
        return out
