"""Cuts images into patches, projects each and adds its position.

Occurs at the entry of every vision transformer. Compute-bound; the patches are a view of the image.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, channels, patch, hidden, patches):
        super().__init__()
        self.patch = patch
        self.weight = nn.Parameter(torch.randn(hidden, channels * patch * patch, dtype=torch.float16) * 0.05)
        self.bias = nn.Parameter(torch.randn(hidden, dtype=torch.float16))
        self.positions = nn.Parameter(torch.randn(patches, hidden, dtype=torch.float16))

    def forward(self, x):
        patches = F.unfold(x, self.patch, stride=self.patch).transpose(1, 2)
        return F.linear(patches, self.weight, self.bias) + self.positions


images = 128
channels = 3
rows = 16
columns = 16
patch = 14
hidden = 1024
SMALL_SIZES = [
    {"images": 2, "rows": 2, "columns": 3, "hidden": 19},
    {"images": 1, "rows": 2, "columns": 2, "hidden": 16},
]


def get_inputs():
    return [torch.randn(images, channels, rows * patch, columns * patch, dtype=torch.float16)]


def get_init_inputs():
    return [channels, patch, hidden, rows * columns]
