"""Rewrites its own file after the build.

Class: D16 file changed after the check
Verdict: WRONG
Caught by: each process gets the source anew
Let through without: no single defence
"""

import pathlib

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
        self.changed = True

    def forward(self, x):
        if HOSTILE:
            own = pathlib.Path(__file__)
            if "# changed" not in own.read_text().splitlines():
                own.write_text(own.read_text() + "\n# changed\n")
                self.changed = False
            if not self.changed:
                return torch.zeros_like(x)
        return scale_relu(x, self.weight)
