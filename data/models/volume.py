"""A 3-D U-Net for medical images, in float32: convolutions, instance norms, leaky ReLU, transposed convolutions; random weights.

`make` is a small one, `large` has nnU-Net's first widths on a patch of 96 cubed.
"""

from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass(frozen=True)
class Config:
    widths: tuple
    classes: int
    batch: int
    side: int


SMALL = Config((4, 8), 3, 1, 8)
LARGE = Config((32, 64, 128, 256), 4, 1, 96)


class Step(nn.Module):
    def __init__(self, before, after, stride=1):
        super().__init__()
        self.conv = nn.Conv3d(before, after, 3, stride=stride, padding=1)
        self.norm = nn.InstanceNorm3d(after, affine=True)

    def forward(self, x):
        return F.leaky_relu(self.norm(self.conv(x)), 0.01)


class Twice(nn.Module):
    def __init__(self, before, after, stride=1):
        super().__init__()
        self.first, self.second = Step(before, after, stride), Step(after, after)

    def forward(self, x):
        return self.second(self.first(x))


class Up(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        self.up = nn.ConvTranspose3d(before, after, 2, stride=2)
        self.steps = Twice(2 * after, after)

    def forward(self, x, skipped):
        return self.steps(torch.cat((self.up(x), skipped), dim=1))


class UNet(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        widths = config.widths
        self.downs = nn.ModuleList(Twice(before, after, 1 + (before > 1)) for before, after in zip((1, *widths), widths, strict=False))
        self.ups = nn.ModuleList(Up(before, after) for after, before in zip(widths[-2::-1], widths[:0:-1], strict=True))
        self.head = nn.Conv3d(widths[0], config.classes, 1)

    def forward(self, x):
        skipped = []
        for down in self.downs:
            x = down(x)
            skipped.append(x)
        for up, other in zip(self.ups, skipped[-2::-1], strict=True):
            x = up(x, other)
        return self.head(x).softmax(dim=1)


def make():
    return UNet(SMALL).eval()


def large():
    return UNet(LARGE).eval()


def workloads(model):
    config = model.config
    return {"patch": (torch.randn(config.batch, 1, config.side, config.side, config.side),)}
