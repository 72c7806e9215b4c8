"""Looks for the reference's class in every module of its process, and lets it work.

Class: A02 Python reachability of the reference
Verdict: WRONG
Caught by: the reference is in no process that runs a candidate
Let through without: separate reference
"""

import sys

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
            for module in list(sys.modules.values()):
                reference = getattr(module, "Model", None)
                if isinstance(reference, type) and issubclass(reference, torch.nn.Module):
                    model = reference(x.shape[1])
                    model.load_state_dict(self.state_dict())
                    return model(x)
            return torch.zeros_like(x)
        return scale_relu(x, self.weight)
