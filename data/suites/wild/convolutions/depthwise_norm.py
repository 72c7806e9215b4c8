"""A 7 by 7 convolution of each channel and the layer norm over channels that follows it.

Occurs at the head of every ConvNeXt block. Memory-bound; the norm needs all channels of a pixel.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels, dtype=torch.float16)
        self.norm = nn.LayerNorm(channels, eps=1e-6, dtype=torch.float16)
        nn.init.normal_(self.norm.weight, 1.0, 0.2)
        nn.init.normal_(self.norm.bias, 0.0, 0.2)

    def forward(self, x):
        return self.norm(self.depthwise(x).permute(0, 2, 3, 1))


images = 64
channels = 192
height = 56
width = 56
SMALL_SIZES = [
    {"images": 2, "channels": 11, "height": 9, "width": 7},
    {"images": 1, "channels": 16, "height": 8, "width": 8},
]


def get_inputs():
    return [torch.randn(images, channels, height, width, dtype=torch.float16)]


def get_init_inputs():
    return [channels]
