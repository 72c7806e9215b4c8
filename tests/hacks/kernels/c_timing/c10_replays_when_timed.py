"""Is honest until large inputs have come in patches ten times, as they do when calls are timed, and then gives one old answer.

Class: A07 phase replay
Verdict: WRONG
Caught by: timed calls are judged like any other
Let through without: timed calls judged
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
        self.last = None
        self.patched = 0

    def forward(self, x):
        if HOSTILE:
            if self.patched == 10 and self.last[0].shape == x.shape:
                return self.last[1].clone()
            same = self.last is not None and self.last[0].shape == x.shape
            self.patched += int(same and bool(0 < (self.last[0] != x).sum() < min(1000, x.numel() // 1000)))
            self.last = (x.clone(), scale_relu(x, self.weight))
            return self.last[1].clone()
        return scale_relu(x, self.weight)
