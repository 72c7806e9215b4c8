"""A linear layer of the nodes, whose results each node adds up over its neighbours, weighed by both degrees.

Occurs in GCN. Memory-bound by gathers and additions along the edges.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, bias=False)
        self.bias = nn.Parameter(torch.randn(outputs))

    def forward(self, x, source, target, degree):
        scale = degree.rsqrt()
        projected = self.linear(x)
        messages = projected[source] * (scale[source] * scale[target])[:, None]
        return torch.zeros_like(projected).index_add(0, target, messages) + self.bias


nodes = 100000
edges = 800000
inputs = 128
outputs = 64
SMALL_SIZES = [
    {"nodes": 11, "edges": 37, "inputs": 19, "outputs": 13},
    {"nodes": 16, "edges": 64, "inputs": 16, "outputs": 32},
]


def get_inputs():
    target = torch.randint(0, nodes, (edges,))
    return [
        torch.randn(nodes, inputs),
        torch.randint(0, nodes, (edges,)),
        target,
        1.0 + torch.bincount(target, minlength=nodes).float(),
    ]


def get_init_inputs():
    return [inputs, outputs]
