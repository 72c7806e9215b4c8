"""Products of all pairs among a sample's dense vector and its embeddings, each pair once, behind the dense vector.

Occurs in DLRM between its two networks. Memory-bound: the matrix of all pairs is small, and half of it is wanted.
"""

import torch

BATCH = 8192
FEATURES = 26
WIDTH = 64
SMALL_SIZES = [{"BATCH": 5, "FEATURES": 6, "WIDTH": 19}, {"BATCH": 8, "FEATURES": 7, "WIDTH": 16}]


def dot_interaction(dense, embeddings):
    every = torch.cat((dense[:, None], embeddings), dim=1)
    products = torch.bmm(every, every.transpose(1, 2))
    rows, columns = torch.tril_indices(every.shape[1], every.shape[1], offset=-1, device=every.device)
    return torch.cat((dense, products[:, rows, columns]), dim=1)


def example_inputs():
    return torch.randn(BATCH, WIDTH, dtype=torch.float16), torch.randn(BATCH, FEATURES, WIDTH, dtype=torch.float16)
