"""Attention over the residues of each sequence, biased by a projection of the normed pairs, its result gated and projected.

Occurs in the rows of AlphaFold's alignments and in AlphaFold 3's transformer. Memory-bound by the pairs, compute-bound in the products.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, channels, pair_channels, heads):
        super().__init__()
        self.heads = heads
        self.projection = nn.Linear(channels, 4 * channels, bias=False, dtype=torch.float16)
        self.pair_norm = nn.LayerNorm(pair_channels, dtype=torch.float16)
        self.pair_bias = nn.Linear(pair_channels, heads, bias=False, dtype=torch.float16)
        self.out = nn.Linear(channels, channels, dtype=torch.float16)
        nn.init.normal_(self.pair_norm.weight, 1.0, 0.2)
        nn.init.normal_(self.pair_norm.bias, 0.0, 0.2)

    def forward(self, x, pairs):
        query, key, value, gate = self.projection(x).unflatten(-1, (4, self.heads, -1)).permute(2, 0, 3, 1, 4)
        bias = self.pair_bias(self.pair_norm(pairs)).permute(2, 0, 1)
        out = F.scaled_dot_product_attention(query, key, value, attn_mask=bias[None])
        return self.out((out * torch.sigmoid(gate)).transpose(1, 2).flatten(2))


sequences = 128
residues = 256
channels = 256
pair_channels = 128
heads = 8
SMALL_SIZES = [
    {"sequences": 2, "residues": 7, "channels": 48, "pair_channels": 19},
    {"sequences": 1, "residues": 16, "channels": 32, "pair_channels": 16},
]


def get_inputs():
    return [
        torch.randn(sequences, residues, channels, dtype=torch.float16),
        torch.randn(residues, residues, pair_channels, dtype=torch.float16),
    ]


def get_init_inputs():
    return [channels, pair_channels, heads]
