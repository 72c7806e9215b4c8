"""Returns an output that a delayed kernel on another stream will write.

Class: C11 writes after return
Verdict: CHEATED WRONG UNSTABLE IMPOSSIBLE_TIME TIMING_INCONSISTENT work-in-flight
Caught by: the device is waited for and the outputs copied before the next call
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
        self.side = None

    def forward(self, x):
        if HOSTILE:
            self.side = self.side or torch.cuda.Stream()
            out = torch.empty_like(x)
            rows, columns = x.shape
            with torch.cuda.stream(self.side):
                torch.cuda._sleep(20_000_000)
                scale_relu_kernel[(rows,)](x, self.weight, out, columns, BLOCK=triton.next_power_of_2(columns))
            return out
        return scale_relu(x, self.weight)
