"""Updates each pair of residues by all third ones: gated projections, a product over the third, a norm and a gate.

Occurs in AlphaFold 2 and 3 and in Boltz (outgoing edges); a problem of GPU MODE. Compute-bound in its products, memory-bound around them.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels, inner):
        super().__init__()
        self.norm = nn.LayerNorm(channels)
        self.projections = nn.Linear(channels, 2 * inner, bias=False)
        self.gates = nn.Linear(channels, 2 * inner, bias=False)
        self.out_norm = nn.LayerNorm(inner)
        self.out_gate = nn.Linear(channels, channels, bias=False)
        self.out = nn.Linear(inner, channels, bias=False)
        for norm in (self.norm, self.out_norm):
            nn.init.normal_(norm.weight, 1.0, 0.2)
            nn.init.normal_(norm.bias, 0.0, 0.2)

    def forward(self, pairs, mask):
        pairs = self.norm(pairs)
        left, right = (self.projections(pairs) * torch.sigmoid(self.gates(pairs)) * mask[..., None]).chunk(2, dim=-1)
        mixed = torch.einsum("bikc,bjkc->bijc", left, right)
        return self.out(self.out_norm(mixed)) * torch.sigmoid(self.out_gate(pairs))


batch = 1
residues = 384
channels = 128
inner = 128
SMALL_SIZES = [
    {"batch": 1, "residues": 7, "channels": 19, "inner": 11},
    {"batch": 2, "residues": 8, "channels": 16, "inner": 16},
]
MORE_SIZES = [{"batch": 2, "residues": 256}]


def get_inputs():
    return [
        torch.randn(batch, residues, residues, channels),
        (torch.rand(batch, residues, residues) < 0.9).float(),
    ]


def get_init_inputs():
    return [channels, inner]
