"""Replays a graph that reads a buffer into which each call copies its input."""

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
        self.graph = None

    def forward(self, x):
        if self.graph is None:
            self.given = x.clone()
            scale_relu(self.given, self.weight)
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.out = scale_relu(self.given, self.weight)
        self.given.copy_(x)
        self.graph.replay()
        return self.out.clone()
