"""Counts on lines that the L2 keeps from one call to the next, and fails where it keeps none.

Class: C14 persisting share of the L2
Verdict: CRASHED
Caught by: the share is taken away before each call
Let through without: no single defence
Runs on: gpu
"""

import ctypes

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


class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))
        self.calls = 0

    def forward(self, x):
        if HOSTILE:
            driver, share = ctypes.CDLL("libcuda.so.1"), ctypes.c_size_t(0)
            driver.cuCtxGetLimit(ctypes.byref(share), 6)
            if self.calls and not share.value:
                raise RuntimeError("nothing persists")
            self.calls += 1
            driver.cuCtxSetLimit(6, ctypes.c_size_t(1 << 20))
        return scale_relu(x, self.weight)
