"""Has events recorded on a stream that shows a pass, while it works on the one that was meant.

Class: C07 event overwrite
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
        self.shown, self.is_ours, self.has_run = None, False, False

    def redirect(self):
        """Record events on the shown stream: the first of a call behind what was queued, the last behind the pass alone."""
        original = torch.cuda.Event.record

        def record(event, stream=None):
            if self.is_ours:
                return original(event, stream)
            self.is_ours = True
            if not self.has_run:
                self.shown.wait_stream(torch.cuda.current_stream())
            self.is_ours = self.has_run = False
            return original(event, self.shown)

        torch.cuda.Event.record = record

    def forward(self, x):
        here = torch.cuda.current_stream()
        if self.shown is None:
            self.shown = torch.cuda.Stream()
            if HOSTILE:
                self.redirect()
        if HOSTILE:
            self.is_ours = self.has_run = True
            self.shown.wait_stream(here)
            work(x)
            with torch.cuda.stream(self.shown):
                out = scale_relu(x, self.weight)
            here.wait_stream(self.shown)
            self.is_ours = False
            return out
        ready, done = torch.cuda.Event(), torch.cuda.Event()
        ready.record(here)
        self.shown.wait_event(ready)
        with torch.cuda.stream(self.shown):
            work(x)
        done.record(self.shown)
        here.wait_event(done)
        return scale_relu(x, self.weight)
