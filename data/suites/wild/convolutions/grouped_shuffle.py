"""A grouped 1 by 1 convolution whose channels are then shuffled between groups and convolved one by one.

Occurs in ShuffleNet. Memory-bound; the shuffle is only another order of writing.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels, groups):
        super().__init__()
        self.groups = groups
        self.pointwise = nn.Conv2d(channels, channels, 1, groups=groups)
        self.depthwise = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)

    def forward(self, x):
        x = torch.relu(self.pointwise(x))
        x = x.unflatten(1, (self.groups, -1)).transpose(1, 2).flatten(1, 2)
        return self.depthwise(x)


images = 64
channels = 240
groups = 3
height = 28
width = 28
SMALL_SIZES = [
    {"images": 2, "channels": 15, "height": 7, "width": 9},
    {"images": 1, "channels": 24, "height": 8, "width": 8},
]


def get_inputs():
    return [torch.randn(images, channels, height, width)]


def get_init_inputs():
    return [channels, groups]
