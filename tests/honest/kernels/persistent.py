"""A few programs stride over all rows."""

import torch
import triton
import triton.language as tl


@triton.jit
def striding_kernel(x_ptr, weight_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    weight = tl.load(weight_ptr + offsets, mask=mask)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * columns + offsets, mask=mask)
        tl.store(out_ptr + row * columns + offsets, tl.maximum(x * weight, 0.0), mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))

    def forward(self, x):
        out = torch.empty_like(x)
        rows, columns = x.shape
        striding_kernel[(min(rows, 4),)](x, self.weight, out, rows, columns, BLOCK=triton.next_power_of_2(columns))
        return out
