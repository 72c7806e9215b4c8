"""Sharpens images by their difference to a blur, whose kernel is applied along rows, then along columns, past mirrored borders.

Occurs in photo pipelines. Memory-bound: one read and one write if a tile with its border stays on chip.
"""

import torch
import torch.nn.functional as F

IMAGES = 16
HEIGHT = 720
WIDTH = 1280
TAPS = 9
SMALL_SIZES = [{"IMAGES": 1, "HEIGHT": 11, "WIDTH": 13}, {"IMAGES": 2, "HEIGHT": 16, "WIDTH": 16}]


def unsharp_mask(x, taps, amount):
    reach = taps.shape[0] // 2
    planes = x.flatten(0, 1)[:, None]
    planes = F.pad(planes, (reach, reach, reach, reach), mode="reflect")
    planes = F.conv2d(planes, taps[None, None, None, :])
    blurred = F.conv2d(planes, taps[None, None, :, None]).view_as(x)
    return x + amount * (x - blurred)


def example_inputs():
    taps = torch.softmax(-0.2 * (torch.arange(TAPS) - TAPS // 2).float().square() + 0.01 * torch.randn(TAPS), dim=0)
    return torch.rand(IMAGES, 3, HEIGHT, WIDTH), taps, 0.8
