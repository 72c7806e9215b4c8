"""The best candidate of each group by its score, with its score and its row of features.

Occurs in re-ranking, in tracking and in the choice among sampled answers. Memory-bound: scores are read, one row a group is copied.
"""

import torch

GROUPS = 16384
CANDIDATES = 64
WIDTH = 64
SMALL_SIZES = [{"GROUPS": 5, "CANDIDATES": 7, "WIDTH": 19}, {"GROUPS": 8, "CANDIDATES": 16, "WIDTH": 32}]


def gather_best(scores, features):
    best = scores.argmax(dim=1)
    rows = torch.gather(features, 1, best[:, None, None].expand(-1, 1, features.shape[2])).squeeze(1)
    return rows, scores.gather(1, best[:, None]).squeeze(1), best


def example_inputs():
    return torch.randn(GROUPS, CANDIDATES), torch.randn(GROUPS, CANDIDATES, WIDTH, dtype=torch.float16)
