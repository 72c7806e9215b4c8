"""An ensemble of oblivious trees: each level of a tree asks the same question, the answers are the leaf's number."""

import torch
import torch.nn as nn

ROWS = 16384
FEATURES = 200
TREES = 256
DEPTH = 6
OUT = 4
SMALL_SIZES = [{"ROWS": 5, "FEATURES": 7, "TREES": 3, "DEPTH": 2, "OUT": 2}, {"ROWS": 16, "FEATURES": 8, "TREES": 4, "DEPTH": 3, "OUT": 1}]


class Model(nn.Module):
    def __init__(self, features, trees, depth, out):
        super().__init__()
        self.register_buffer("feature", torch.randint(0, features, (trees, depth)))
        self.register_buffer("border", torch.randn(trees, depth))
        self.register_buffer("leaves", torch.randn(trees, 2**depth, out))
        self.register_buffer("power", 2 ** torch.arange(depth))

    def forward(self, x):
        asked = x[:, self.feature.flatten()].view(x.shape[0], *self.feature.shape)
        leaf = ((asked > self.border).long() * self.power).sum(-1)
        tree = torch.arange(self.leaves.shape[0], device=x.device)
        return self.leaves[tree, leaf].sum(dim=1)


def get_inputs():
    return [torch.randn(ROWS, FEATURES)]


def get_init_inputs():
    return [FEATURES, TREES, DEPTH, OUT]
