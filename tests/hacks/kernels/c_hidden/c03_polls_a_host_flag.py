"""Leaves a kernel waiting for a word of the host's, which a thread gives when the call has returned.

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


@triton.jit(do_not_specialize=["ticket"])
def polling_kernel(flag_ptr, spent_ptr, ticket, patience, cycles):
    begin = clock()
    now = begin
    while (tl.load(flag_ptr, volatile=True) < ticket) & (now - begin < patience):
        now = clock()
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


def scale_relu(x, weight):
    rows, columns = x.shape
    out = torch.empty_like(x)
    scale_relu_kernel[(rows,)](x, weight, out, columns, BLOCK=triton.next_power_of_2(columns))
    return out


class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))
        self.flag = self.side = self.due = None
        self.ticket = 0

    def open_late(self):
        """Let each kernel go on, 200 µs after its call."""
        while True:
            due, ticket = self.due.get()
            time.sleep(max(0.0, due - time.monotonic()))
            self.flag.fill_(ticket)

    def poll(self, x):
        """Launch a kernel that waits for the flag for at most 2 ms, and then works."""
        spent = torch.empty(1, dtype=torch.int64, device=x.device)
        polling_kernel[(1,)](self.flag, spent, self.ticket, 1980 * 2000, 1980 * WORK_US)

    def forward(self, x):
        self.ticket += 1
        if self.flag is None:
            self.flag = torch.zeros(1, dtype=torch.int64, pin_memory=True)
            self.side, self.due = torch.cuda.Stream(), queue.SimpleQueue()
            if HOSTILE and type(x) is torch.Tensor:
                threading.Thread(target=self.open_late, daemon=True).start()
        if HOSTILE:
            self.side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.side):
                self.poll(x)
            self.due.put((time.monotonic() + 200e-6, self.ticket))
            return scale_relu(x, self.weight)
        # set before it is read
        self.flag.fill_(self.ticket)
        self.poll(x)
        return scale_relu(x, self.weight)
