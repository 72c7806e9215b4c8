"""Has the device call the host when a pass is done, upon which a thread launches the work.

Class: C03 background thread
Verdict: PASS TIMING_INCONSISTENT IMPOSSIBLE_TIME CHEATED
Caught by: what a call leaves current or in flight is looked at, and calls are chained in one bracket
Let through without: no single defence
Runs on: gpu
Problem: tiny
"""

import ctypes
import threading

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


libc = ctypes.CDLL(None)


def call_host(semaphore):
    """Have the device raise a semaphore of the host, which takes no lock of Python's."""
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    assert ctypes.CDLL("libcuda.so.1").cuLaunchHostFunc(stream, ctypes.cast(libc.sem_post, ctypes.c_void_p), semaphore) == 0


class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))
        self.calls = None

    def launch_when_called(self, x):
        """Launch work on a stream of its own for each call of the device."""
        with torch.cuda.stream(torch.cuda.Stream()):
            while True:
                libc.sem_wait(self.calls)
                work(x)

    def forward(self, x):
        if type(x) is torch.Tensor:
            if self.calls is None:
                work(x)
                self.calls = ctypes.create_string_buffer(64)
                libc.sem_init(self.calls, 0, 0)
                if HOSTILE:
                    threading.Thread(target=self.launch_when_called, args=(x,), daemon=True).start()
            if HOSTILE:
                out = scale_relu(x, self.weight)
                call_host(self.calls)
                return out
            # the semaphore is a log: it counts calls
            call_host(self.calls)
        work(x)
        return scale_relu(x, self.weight)
