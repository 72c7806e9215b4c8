"""Convolution, batch normalisation with fixed statistics, ReLU.

Occurs all through convolutional networks at inference. The normalisation is an affine map of each channel and can be folded
into the convolution's epilogue.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, padding=kernel_size // 2, bias=False)
        self.norm = nn.BatchNorm2d(out_channels)
        # as after training: statistics and scales that cannot be left out
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.2)
        nn.init.normal_(self.norm.bias, std=0.2)
        nn.init.normal_(self.norm.running_mean, std=0.3)
        nn.init.uniform_(self.norm.running_var, 0.5, 1.5)
        self.eval()

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


batch_size = 32
in_channels = 64
out_channels = 64
height = 56
width = 56
kernel_size = 3


def get_inputs():
    return [torch.randn(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]
