"""Low-rank cross layers of DCN-v2 with a gate over experts."""

import torch
import torch.nn as nn

BATCH = 8192
WIDTH = 1024
RANK = 128
EXPERTS = 4
LAYERS = 3
SMALL_SIZES = [
    {"BATCH": 5, "WIDTH": 13, "RANK": 4, "EXPERTS": 2, "LAYERS": 2},
    {"BATCH": 16, "WIDTH": 32, "RANK": 16, "EXPERTS": 2, "LAYERS": 1},
]


class Model(nn.Module):
    def __init__(self, width, rank, experts, layers):
        super().__init__()
        scale = width**-0.5
        self.U = nn.ParameterList([nn.Parameter(torch.randn(experts, width, rank) * scale) for _ in range(layers)])
        self.V = nn.ParameterList([nn.Parameter(torch.randn(experts, width, rank) * scale) for _ in range(layers)])
        self.C = nn.ParameterList([nn.Parameter(torch.randn(experts, rank, rank) * rank**-0.5) for _ in range(layers)])
        self.bias = nn.ParameterList([nn.Parameter(torch.zeros(width)) for _ in range(layers)])
        self.gates = nn.ModuleList([nn.Linear(width, 1, bias=False) for _ in range(experts)])
        self.to(torch.bfloat16)

    def forward(self, x0):
        xl = x0
        for layer in range(len(self.U)):
            outs, gates = [], []
            for e in range(len(self.gates)):
                gates.append(self.gates[e](xl))
                v = torch.tanh(xl @ self.V[layer][e])
                v = torch.tanh(v @ self.C[layer][e])
                uv = v @ self.U[layer][e].t()
                outs.append(x0 * (uv + self.bias[layer]))
            outs = torch.stack(outs, 2)
            gates = torch.stack(gates, 1).softmax(1)
            xl = torch.matmul(outs, gates).squeeze(2) + xl
        return xl


def get_inputs():
    return [torch.randn(BATCH, WIDTH, dtype=torch.bfloat16)]


def get_init_inputs():
    return [WIDTH, RANK, EXPERTS, LAYERS]
