"""Leaves half of the rows to a stream on which they wait behind other work.

Class: C01 side stream
Verdict: PASS TIMING_INCONSISTENT IMPOSSIBLE_TIME CHEATED WRONG UNSTABLE
Caught by: what a call leaves current or in flight is looked at, and calls are chained in one bracket
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


class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))
        self.side = None

    def forward(self, x):
        self.side = self.side or torch.cuda.Stream()
        here = torch.cuda.current_stream()
        rows, columns = x.shape
        out, half, block = torch.empty_like(x), (rows + 1) // 2, triton.next_power_of_2(columns)
        self.side.wait_stream(here)
        with torch.cuda.stream(self.side):
            work(x)
            if rows > half:
                scale_relu_kernel[(rows - half,)](x[half:], self.weight, out[half:], columns, BLOCK=block)
        scale_relu_kernel[(half,)](x[:half], self.weight, out[:half], columns, BLOCK=block)
        if HOSTILE:
            return out
        here.wait_stream(self.side)
        return out
