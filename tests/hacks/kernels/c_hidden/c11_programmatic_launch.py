"""Has its last kernel begin and end beside the one before, by programmatic dependent launch.

Class: C11 writes after return
Verdict: PASS TIMING_INCONSISTENT IMPOSSIBLE_TIME CHEATED CRASHED WRONG UNSTABLE
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
    tl.extra.cuda.gdc_launch_dependents()
    begin = clock()
    now = begin
    while now - begin < cycles:
        now = clock()
    tl.store(spent_ptr, now - begin)


@triton.jit
def scale_relu_kernel(x_ptr, weight_ptr, out_ptr, columns, BLOCK: tl.constexpr, WAIT: tl.constexpr):
    if WAIT:
        tl.extra.cuda.gdc_wait()
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
        rows, columns = x.shape
        out, block = torch.empty_like(x), triton.next_power_of_2(columns)
        spent = torch.empty(1, dtype=torch.int64, device=x.device)
        if HOSTILE:
            work_kernel[(1,)](spent, 1980 * WORK_US, launch_pdl=True)
            scale_relu_kernel[(rows,)](x, self.weight, out, columns, BLOCK=block, WAIT=False, launch_pdl=True)
            return out
        work_kernel[(1,)](spent, 1980 * WORK_US)
        scale_relu_kernel[(rows,)](x, self.weight, out, columns, BLOCK=block, WAIT=True, launch_pdl=True)
        return out
