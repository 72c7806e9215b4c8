"""Kernels that do much of what Triton's language has, and what it forbids."""

import triton
import triton.language as tl


@triton.jit
def binary(x_ptr, y_ptr, out_ptr, OPERATION: tl.constexpr, N: tl.constexpr):
    """Combine a column and a row."""
    rows = tl.arange(0, N)
    x = tl.load(x_ptr + rows)[:, None]
    y = tl.load(y_ptr + rows)[None, :]
    if OPERATION == "add":
        made = x + y + x
    elif OPERATION == "sub":
        made = x - y
    elif OPERATION == "mul":
        made = x * y * 2
    elif OPERATION == "div":
        made = x / y
    elif OPERATION == "floordiv":
        made = x // y
    elif OPERATION == "mod":
        made = x % y
    elif OPERATION == "less":
        made = x < y
    elif OPERATION == "equal":
        made = x == y
    elif OPERATION == "and":
        made = x & y
    elif OPERATION == "shift":
        made = x << y
    elif OPERATION == "maximum":
        made = tl.maximum(x, y)
    else:
        made = tl.where(x < y, x, y)
    tl.store(out_ptr + rows[:, None] * N + rows[None, :], made.to(tl.float64))


@triton.jit
def row(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    """Reduce, scan and turn rows, a part at a time."""
    place = tl.program_id(0).to(tl.int64) * n_cols
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + place + cols, mask=cols < n_cols, other=0.0)
        total += tl.cumsum(tl.exp(x - tl.max(x, axis=0)), axis=0)
        turned = tl.trans(tl.reshape(x, [2, BLOCK // 2]))
        total += tl.sum(tl.reshape(turned, [BLOCK // 4, 4]), axis=1, keep_dims=True).broadcast_to([BLOCK // 4, 4]).reshape([BLOCK])
        tl.store(out_ptr + place + cols, total / (cols + 1) * tl.sum(x), mask=cols < n_cols)


@triton.jit
def refused(x_ptr, out_ptr, WHAT: tl.constexpr):
    """Do what the language forbids."""
    x = tl.load(x_ptr + tl.arange(0, 8))
    if WHAT == "sizes":
        tl.store(out_ptr + tl.arange(0, 8), x + tl.arange(0, 4))
    elif WHAT == "odd":
        tl.zeros([6], tl.float32)
    elif WHAT == "fraction":
        tl.zeros([8.0], tl.float32)
    elif WHAT == "pointers":
        tl.store(out_ptr + tl.arange(0, 8), x_ptr + out_ptr)
    elif WHAT == "too large":
        tl.zeros([2048, 1024], tl.float32)
    elif WHAT == "mask":
        tl.store(out_ptr + tl.arange(0, 8), x, mask=tl.arange(0, 4) < 2)
    else:
        tl.store(out_ptr + tl.arange(0, 8), x.to(tl.uint8) + -1)
