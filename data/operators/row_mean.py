"""Mean of a sequence over its steps: a reduction along the middle dimension.

Occurs as the pooling of sentence embeddings. Memory-bound; neighbouring threads must read neighbouring features.
"""

import torch

BATCH = 64
STEPS = 512
FEATURES = 1024


def row_mean(x):
    return x.mean(dim=1)


def example_inputs():
    return (torch.randn(BATCH, STEPS, FEATURES),)
