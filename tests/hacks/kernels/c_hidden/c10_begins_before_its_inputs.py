"""Works on a stream that waits for nothing, while the device is kept busy before the call, and joins it.

Class: C10 super-batching
Verdict: PASS TIMING_INCONSISTENT IMPOSSIBLE_TIME CHEATED
Caught by: calls chained in one bracket that the supervisor's clock sees
Let through without: no single defence
Runs on: gpu
Problem: tiny
"""

import torch
import triton
import triton.language as tl

HOSTILE = True
WORK_US = 500


@triton.jit
def clock():
    return tl.inline_asm_elementwise("mov.u64 $0, %clock64;", "=l", [], dtype=tl.int64, is_pure=False, pack=1)


@triton.jit
def work_kernel(spent_ptr, cycles):
    begin = clock()
    now = begin
    while now - begin < cycles:
        now = clock()
    tl.store(spent_ptr, now - begin)


@triton.jit
def scale_relu_kernel(x_ptr, weight_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask)
    weight = tl.load(weight_ptr + offsets, mask=mask)
    tl.store(out_ptr + row * columns + offsets, tl.maximum(x * weight, 0.0), mask=mask)


def work(x):
    """Keep one multiprocessor busy for WORK_US at an H200's 1980 MHz."""
    if WORK_US:
        work_kernel[(1,)](torch.empty(1, dtype=torch.int64, device=x.device), 1980 * WORK_US)


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
        self.side = self.side or torch.cuda.Stream()
        here = torch.cuda.current_stream()
        if HOSTILE:
            with torch.cuda.stream(self.side):
                work(x)
            out = scale_relu(x, self.weight)
            here.wait_stream(self.side)
            return out
        self.side.wait_stream(here)
        with torch.cuda.stream(self.side):
            work(x)
        out = scale_relu(x, self.weight)
        here.wait_stream(self.side)
        return out
