"""A 3 by 3 convolution, batch norm with its running statistics, SiLU, and the shortcut.

Occurs in every bottleneck of YOLO detectors. Compute-bound; norm and shortcut belong into the convolution's epilogue.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.convolution = nn.Conv2d(channels, channels, 3, padding=1, bias=False, dtype=torch.float16)
        self.norm = nn.BatchNorm2d(channels, eps=1e-3, dtype=torch.float16)
        nn.init.normal_(self.norm.weight, 1.0, 0.2)
        nn.init.normal_(self.norm.bias, 0.0, 0.2)
        self.norm.running_mean.normal_(0.0, 0.3)
        self.norm.running_var.uniform_(0.5, 1.5)
        self.eval()

    def forward(self, x):
        return x + F.silu(self.norm(self.convolution(x)))


images = 32
channels = 128
height = 80
width = 80
SMALL_SIZES = [
    {"images": 2, "channels": 11, "height": 9, "width": 7},
    {"images": 1, "channels": 16, "height": 8, "width": 8},
]
MORE_SIZES = [{"images": 1, "height": 160, "width": 160, "channels": 64}]


def get_inputs():
    return [torch.randn(images, channels, height, width, dtype=torch.float16)]


def get_init_inputs():
    return [channels]
