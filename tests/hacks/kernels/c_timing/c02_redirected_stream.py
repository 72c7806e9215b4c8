"""Makes another stream the current one, so that events are recorded where nothing happens.

Class: C02 stream redirection
Verdict: CHEATED IMPOSSIBLE_TIME TIMING_INCONSISTENT WRONG UNSTABLE stream-left
Caught by: the stream that was current before a call must be current again
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
        self.side = self.idle = None

    def forward(self, x):
        if HOSTILE:
            self.side = self.side or torch.cuda.Stream()
            self.idle = self.idle or torch.cuda.Stream()
            self.side.wait_stream(torch.cuda.current_stream())
            torch.cuda.set_stream(self.side)
            out = scale_relu(x, self.weight)
            torch.cuda.set_stream(self.idle)
            return out
        return scale_relu(x, self.weight)
