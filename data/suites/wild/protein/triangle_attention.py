"""Attention of each residue's pairs among themselves, with a bias by the third pair, a mask and a gate.

Occurs in AlphaFold and OpenFold (around the starting node). Compute-bound; the bias is shared by all rows.
"""

import torch

RESIDUES = 256
HEADS = 4
HEAD_SIZE = 32
SMALL_SIZES = [
    {"RESIDUES": 7, "HEADS": 2, "HEAD_SIZE": 12},
    {"RESIDUES": 16, "HEADS": 1, "HEAD_SIZE": 16},
]
MORE_SIZES = [{"RESIDUES": 384}]


def triangle_attention(query, key, value, bias, mask, gate):
    scores = torch.einsum("ihqd,ihkd->ihqk", query, key) * query.shape[-1] ** -0.5
    scores = scores.float() + bias[None].float() + (mask.float()[:, None, None, :] - 1.0) * 1e9
    out = torch.einsum("ihqk,ihkd->ihqd", torch.softmax(scores, dim=-1).to(value.dtype), value)
    return (out.transpose(1, 2) * torch.sigmoid(gate)).flatten(2)


def example_inputs():
    rows = (RESIDUES, HEADS, RESIDUES, HEAD_SIZE)
    mask = torch.rand(RESIDUES, RESIDUES) < 0.9
    return (
        torch.randn(rows, dtype=torch.bfloat16),
        torch.randn(rows, dtype=torch.bfloat16),
        torch.randn(rows, dtype=torch.bfloat16),
        torch.randn(HEADS, RESIDUES, RESIDUES, dtype=torch.bfloat16),
        (mask | torch.eye(RESIDUES, dtype=torch.bool)).bfloat16(),
        torch.randn(RESIDUES, RESIDUES, HEADS, HEAD_SIZE, dtype=torch.bfloat16),
    )
