"""Gradient-boosted trees walked level by level through arrays of nodes, missing values by a default side."""

import torch
import torch.nn as nn

ROWS = 8192
FEATURES = 64
TREES = 100
LEVELS = 8
SMALL_SIZES = [{"ROWS": 4, "FEATURES": 5, "TREES": 3, "LEVELS": 3}, {"ROWS": 16, "FEATURES": 8, "TREES": 4, "LEVELS": 2}]


class Model(nn.Module):
    def __init__(self, features, trees, levels):
        super().__init__()
        inner = 2**levels - 1
        self.levels = levels
        self.register_buffer("split", torch.randint(0, features, (trees, inner)))
        self.register_buffer("threshold", torch.randn(trees, inner))
        self.register_buffer("default_left", torch.randint(0, 2, (trees, inner)).bool())
        self.register_buffer("value", torch.randn(trees, 2**levels) * 0.1)

    def forward(self, x):
        node = torch.zeros(x.shape[0], self.split.shape[0], dtype=torch.int64, device=x.device)
        tree = torch.arange(self.split.shape[0], device=x.device)[None, :]
        for _ in range(self.levels):
            seen = torch.gather(x, 1, self.split[tree, node])
            left = torch.where(torch.isnan(seen), self.default_left[tree, node], seen < self.threshold[tree, node])
            node = 2 * node + torch.where(left, 1, 2)
        margin = self.value[tree, node - (2**self.levels - 1)].sum(1)
        return torch.sigmoid(margin)


def get_inputs():
    x = torch.randn(ROWS, FEATURES)
    x[torch.rand(ROWS, FEATURES) < 0.1] = float("nan")
    return [x]


def get_init_inputs():
    return [FEATURES, TREES, LEVELS]
