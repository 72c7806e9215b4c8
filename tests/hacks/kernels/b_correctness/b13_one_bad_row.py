"""Computes one row of many in low precision: the whole tensor hides it.

Class: B13 loose aggregate
Verdict: WRONG
Caught by: the worst row is judged too
Let through without: worst row
"""

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

    def forward(self, x):
        if HOSTILE:
            out = scale_relu(x, self.weight)
            if x.shape[0] >= 8:
                # less where the row is most of the tensor, as it may be by chance: the whole would show it
                least = torch.nan_to_num(out.norm() / (4 * out[3].norm()))
                out[3] *= 1 + 3e-6 * least.clamp(max=1)
            return out
        return scale_relu(x, self.weight)
