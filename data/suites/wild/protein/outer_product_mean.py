"""Mean over all sequences of the outer products of two residues' channels, projected to the pair's channels.

Occurs in AlphaFold's Evoformer. Compute-bound; the outer products are much larger than what comes in and goes out.
"""

import torch

SEQUENCES = 256
RESIDUES = 192
INNER = 32
CHANNELS = 128
SMALL_SIZES = [
    {"SEQUENCES": 5, "RESIDUES": 7, "INNER": 6, "CHANNELS": 11},
    {"SEQUENCES": 16, "RESIDUES": 4, "INNER": 8, "CHANNELS": 16},
]


def outer_product_mean(left, right, weight, bias):
    outer = torch.einsum("sic,sjd->ijcd", left, right) / left.shape[0]
    return outer.flatten(2) @ weight.t() + bias


def example_inputs():
    return (
        torch.randn(SEQUENCES, RESIDUES, INNER, dtype=torch.bfloat16),
        torch.randn(SEQUENCES, RESIDUES, INNER, dtype=torch.bfloat16),
        torch.randn(CHANNELS, INNER * INNER, dtype=torch.bfloat16) * 0.05,
        torch.randn(CHANNELS, dtype=torch.bfloat16),
    )
