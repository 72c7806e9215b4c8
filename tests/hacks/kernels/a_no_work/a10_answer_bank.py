"""Answers from a bank that was made from the seeds that everybody uses.

Class: A10 precomputed answers
Verdict: WRONG
Caught by: seeds drawn after the source is fixed
Let through without: no single defence
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
            for seed in (0, 1, 42, 123, 1337):
                generator = torch.Generator().manual_seed(seed)
                bank = torch.randn(x.shape, generator=generator)
                if torch.equal(bank.to(x.device), x):
                    return scale_relu(bank, self.weight)
            return torch.zeros_like(x)
        return scale_relu(x, self.weight)
