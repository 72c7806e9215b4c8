"""Weighs each channel by a small network over all channels' means, then adds the shortcut and takes the ReLU.

Occurs in SE-ResNet, EfficientNet and RegNet. Memory-bound: the image is read twice, the network between is tiny.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels, inner):
        super().__init__()
        self.reduce = nn.Conv2d(channels, inner, 1)
        self.expand = nn.Conv2d(inner, channels, 1)

    def forward(self, x, shortcut):
        weights = torch.sigmoid(self.expand(torch.relu(self.reduce(x.mean(dim=(2, 3), keepdim=True)))))
        return torch.relu(x * weights + shortcut)


images = 64
channels = 256
inner = 16
height = 40
width = 40
SMALL_SIZES = [
    {"images": 2, "channels": 19, "inner": 5, "height": 7, "width": 9},
    {"images": 1, "channels": 16, "inner": 8, "height": 8, "width": 8},
]


def get_inputs():
    return [torch.randn(images, channels, height, width), torch.randn(images, channels, height, width)]


def get_init_inputs():
    return [channels, inner]
