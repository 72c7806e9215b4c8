"""Prepares a table on the host in each call, which takes 200 µs of its caller's time.

Runs on: gpu
"""

import time

import torch
import triton
import triton.language as tl

HOST_US = 200


@triton.jit
def scale_relu_kernel(x_ptr, weight_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask)
    weight = tl.load(weight_ptr + offsets, mask=mask)
    tl.store(out_ptr + row * columns + offsets, tl.maximum(x * weight, 0.0), mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))

    def forward(self, x):
        end = time.perf_counter() + 1e-6 * HOST_US
        grid = (x.shape[0],)
        while time.perf_counter() < end:
            grid = tuple(sorted(grid))
        out = torch.empty_like(x)
        scale_relu_kernel[grid](x, self.weight, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
