"""Small Triton kernels in bfloat16 and float8, each for one thing that the interpreter's emulation must do as a GPU does it."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.load(x_ptr + at) + tl.load(y_ptr + at))


@triton.jit
def subtract(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.load(x_ptr + at) - tl.load(y_ptr + at))


@triton.jit
def multiply(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.load(x_ptr + at) * tl.load(y_ptr + at))


@triton.jit
def divide(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.load(x_ptr + at) / tl.load(y_ptr + at))


@triton.jit
def multiply_add(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    y = tl.load(y_ptr + at)
    tl.store(out_ptr + at, x * y + x)


@triton.jit
def fused_multiply_add(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    y = tl.load(y_ptr + at)
    tl.store(out_ptr + at, tl.fma(x, y, x))


@triton.jit
def chain(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    y = tl.load(y_ptr + at)
    total = x
    for _ in range(8):
        total = total * y + x
    tl.store(out_ptr + at, total)


@triton.jit
def constants(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    y = tl.load(y_ptr + at, mask=at % 3 != 0, other=1.7)
    tl.store(out_ptr + at, (1.1 * x - 3) / 0.3 + y)


@triton.jit
def choose(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    y = tl.load(y_ptr + at)
    larger = tl.where(x > y, x, -y)
    tl.store(out_ptr + at, tl.minimum(tl.maximum(larger, tl.abs(y)), x))


@triton.jit
def exponential(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at).to(tl.float32)
    tl.store(out_ptr + at, tl.exp(x) / (1.0 + tl.exp(-x)))


@triton.jit
def cast(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.load(x_ptr + at).to(out_ptr.dtype.element_ty))


@triton.jit
def cast_toward_zero(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.load(x_ptr + at).to(out_ptr.dtype.element_ty, fp_downcast_rounding="rtz"))


@triton.jit
def store(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.load(x_ptr + at))


@triton.jit
def bitcast(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.load(x_ptr + at).to(tl.uint16, bitcast=True).to(tl.int32))


@triton.jit
def row_sum(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    rows = tl.arange(0, 16)
    x = tl.load(x_ptr + rows[:, None] * (N // 16) + tl.arange(0, N // 16)[None, :])
    tl.store(out_ptr + rows, tl.sum(x, axis=1))


@triton.jit
def row_sum_cast(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    rows = tl.arange(0, 16)
    x = tl.load(x_ptr + rows[:, None] * (N // 16) + tl.arange(0, N // 16)[None, :])
    tl.store(out_ptr + rows, tl.sum(x.to(tl.float32), axis=1))


@triton.jit
def row_max(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    rows = tl.arange(0, 16)
    x = tl.load(x_ptr + rows[:, None] * (N // 16) + tl.arange(0, N // 16)[None, :])
    tl.store(out_ptr + rows, tl.max(x, axis=1))


@triton.jit
def add_pair(left, right):
    return left + right


@triton.jit
def running_sum(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, 16)[:, None] * (N // 16) + tl.arange(0, N // 16)[None, :]
    tl.store(out_ptr + at, tl.associative_scan(tl.load(x_ptr + at), 1, add_pair))


@triton.jit
def cumulative_sum(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, 16)[:, None] * (N // 16) + tl.arange(0, N // 16)[None, :]
    tl.store(out_ptr + at, tl.cumsum(tl.load(x_ptr + at), 1))


@triton.jit
def atomic_add(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.load(y_ptr + at))
    tl.debug_barrier()
    tl.atomic_add(out_ptr + at, tl.load(x_ptr + at))


@triton.jit
def dot(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    """x: (32, N // 32), y: (N // 32, 32) -> out: (32, 32)"""
    K: tl.constexpr = N // 32
    side = tl.arange(0, 32)
    inner = tl.arange(0, K)
    x = tl.load(x_ptr + side[:, None] * K + inner[None, :])
    y = tl.load(y_ptr + inner[:, None] * 32 + side[None, :])
    tl.store(out_ptr + side[:, None] * 32 + side[None, :], tl.dot(x, y))


@triton.jit
def wide_dot(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    """x: (64, 256), y: (256, 16), both read over again from their N elements -> out: (64, 16), as Hopper's wgmma multiplies"""
    rows = tl.arange(0, 64)
    columns = tl.arange(0, 16)
    inner = tl.arange(0, 256)
    x = tl.load(x_ptr + (rows[:, None] * 256 + rows[:, None] + inner[None, :]) % N)
    y = tl.load(y_ptr + (inner[:, None] * 16 + columns[None, :] * 3) % N)
    tl.store(out_ptr + rows[:, None] * 16 + columns[None, :], tl.dot(x, y))
