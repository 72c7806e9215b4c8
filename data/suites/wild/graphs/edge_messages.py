"""Messages along edges by a small network of both ends and the edge, added up at their targets.

Occurs in MPNN, GraphCast and mesh simulators. Compute-bound in the products, memory-bound around them; the joined inputs need no copy.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, width, edge_width, hidden):
        super().__init__()
        self.first = nn.Linear(2 * width + edge_width, hidden, dtype=torch.bfloat16)
        self.second = nn.Linear(hidden, width, dtype=torch.bfloat16)

    def forward(self, x, edges, source, target):
        joined = torch.cat((x[source], x[target], edges), dim=-1)
        messages = self.second(F.silu(self.first(joined)))
        return x + torch.zeros_like(x).index_add(0, target, messages)


nodes = 20000
edges = 160000
width = 128
edge_width = 32
hidden = 128
SMALL_SIZES = [
    {"nodes": 11, "edges": 37, "width": 13, "edge_width": 5, "hidden": 19},
    {"nodes": 16, "edges": 64, "width": 16, "edge_width": 16, "hidden": 32},
]


def get_inputs():
    return [
        torch.randn(nodes, width, dtype=torch.bfloat16),
        torch.randn(edges, edge_width, dtype=torch.bfloat16),
        torch.randint(0, nodes, (edges,)),
        torch.randint(0, nodes, (edges,)),
    ]


def get_init_inputs():
    return [width, edge_width, hidden]
