"""Replays a graph that reads its input in place, and makes another where the address changes."""

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
        self.graphs = {}

    def forward(self, x):
        key = (x.data_ptr(), tuple(x.shape))
        if key not in self.graphs:
            scale_relu(x, self.weight)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out = scale_relu(x, self.weight)
            self.graphs[key] = (graph, out)
        graph, out = self.graphs[key]
        graph.replay()
        return out
