"""Works in one call of fifteen and gives old answers in the others, after seven honest ones of large inputs: a check makes fewer.

Class: C10 super-batching
Verdict: WRONG
Caught by: the next inputs are not there before the last outputs are collected; timed calls are judged
Let through without: no single defence
Runs on: gpu
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


class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))
        self.calls, self.last = 0, None

    def forward(self, x):
        if HOSTILE:
            self.calls += x.numel() > 1 << 20
            if self.calls < 8 or self.calls % 15 == 0:
                self.last = scale_relu(x, self.weight)
            return self.last.clone()
        return scale_relu(x, self.weight)
