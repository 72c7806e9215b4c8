"""Has a thread launch the work when the call has returned.

Class: C03 background thread
Verdict: PASS TIMING_INCONSISTENT IMPOSSIBLE_TIME CHEATED
Caught by: what a call leaves current or in flight is looked at, and calls are chained in one bracket
Let through without: no single defence
Runs on: gpu
Problem: tiny
"""

import queue
import threading
import time

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
        self.due = self.thread = None

    def launch(self, x, stream):
        """Launch the work as another thread, for which another stream is the current one."""
        with torch.cuda.stream(stream):
            work(x)

    def launch_late(self, x):
        """Launch work for each call, 300 µs after it."""
        side = torch.cuda.Stream()
        while True:
            time.sleep(max(0.0, self.due.get() - time.monotonic()))
            self.launch(x, side)

    def forward(self, x):
        if HOSTILE:
            if self.due is None:
                work(x)
                self.due = queue.SimpleQueue()
            if self.thread is None and type(x) is torch.Tensor:
                self.thread = threading.Thread(target=self.launch_late, args=(x,), daemon=True)
                self.thread.start()
            self.due.put(time.monotonic() + 300e-6)
            return scale_relu(x, self.weight)
        thread = threading.Thread(target=self.launch, args=(x, torch.cuda.current_stream()))
        thread.start()
        thread.join()
        return scale_relu(x, self.weight)
