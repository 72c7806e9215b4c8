"""Scores each residue of a prediction by how many of its true distances are kept within half to four angstroms (lDDT).

Occurs in the training and ranking of structure models. Memory-bound only if the distances are written; else bound by arithmetic.
"""

import torch

BATCH = 8
RESIDUES = 1024
SMALL_SIZES = [{"BATCH": 2, "RESIDUES": 13}, {"BATCH": 1, "RESIDUES": 32}]


def distances(x):
    return ((x[:, :, None] - x[:, None]).square().sum(dim=-1) + 1e-8).sqrt()


def distance_score(predicted, true, mask):
    wanted = distances(true)
    off = (distances(predicted) - wanted).abs()
    near = (wanted < 15.0) & (wanted > 1e-3) & (mask[:, :, None] * mask[:, None] > 0)
    kept = torch.stack([(off < reach).float() for reach in (0.5, 1.0, 2.0, 4.0)]).mean(dim=0)
    return (kept * near).sum(dim=-1) / (near.sum(dim=-1) + 1e-6)


def example_inputs():
    true = torch.randn(BATCH, RESIDUES, 3) * 8.0
    return true + torch.randn(BATCH, RESIDUES, 3), true, (torch.rand(BATCH, RESIDUES) < 0.95).float()
