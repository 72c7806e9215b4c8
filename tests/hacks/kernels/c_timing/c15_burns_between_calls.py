"""Keeps the device busy while the baselines are timed.

Class: C15 sabotaged baseline
Verdict: TIMING_INCONSISTENT
Caught by: the baselines are timed before and after its process too
Let through without: baselines alone
Runs on: gpu
Problem: large

Processes take turns on a device by slices of some milliseconds, and a baseline's call is slowed where it does not fit into one.
"""

import threading
import time

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
        self.busy = threading.Event()
        self.thread = None
        self.done = None

    def burn(self):
        """Fill memory over and over from the end of a call until the next one."""
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            waste = torch.empty(1 << 28, device="cuda")
            while True:
                if self.busy.is_set() or not self.done.query():
                    time.sleep(0.0001)
                    continue
                for _ in range(4):
                    waste.zero_()
                side.synchronize()

    def forward(self, x):
        if HOSTILE:
            self.busy.set()
            torch.cuda.synchronize()
            if self.thread is None:
                self.done = torch.cuda.Event()
                self.thread = threading.Thread(target=self.burn, daemon=True)
                self.thread.start()
            out = scale_relu(x, self.weight)
            self.done.record()
            self.busy.clear()
            return out
        return scale_relu(x, self.weight)
