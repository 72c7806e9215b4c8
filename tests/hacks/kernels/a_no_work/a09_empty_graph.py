"""Replays a graph that recorded nothing; its output is what the first launch left.

Class: A09 stale graph
Verdict: WRONG UNSTABLE
Caught by: fresh contents, and every judged call is a call like any other
Let through without: no single defence
Runs on: gpu
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
        self.graph = None

    def forward(self, x):
        if HOSTILE:
            if self.graph is None:
                self.out = scale_relu(x, self.weight)
                torch.cuda.synchronize()
                self.graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self.graph):
                    self.marker = torch.zeros(1, device=x.device)
            self.graph.replay()
            return self.out
        return scale_relu(x, self.weight)
