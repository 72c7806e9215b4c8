"""Works on two halves at the same time and waits for both.

Runs on: gpu
"""

import torch
import triton
import triton.language as tl


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
        self.side = None

    def forward(self, x):
        self.side = self.side or torch.cuda.Stream()
        half = x.shape[0] // 2
        if half == 0:
            return scale_relu(x, self.weight)
        out = torch.empty_like(x)
        block = triton.next_power_of_2(x.shape[1])
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            scale_relu_kernel[(half,)](x[:half], self.weight, out[:half], x.shape[1], BLOCK=block)
        scale_relu_kernel[(x.shape[0] - half,)](x[half:], self.weight, out[half:], x.shape[1], BLOCK=block)
        torch.cuda.current_stream().wait_stream(self.side)
        return out
