"""Moves an image along a field of offsets by bilinear sampling, and weighs it with the other frame.

Occurs in optical flow, frame interpolation and video codecs. Memory-bound by gathers that mostly lie near one another.
"""

import torch
import torch.nn.functional as F

IMAGES = 8
CHANNELS = 32
HEIGHT = 256
WIDTH = 448
SMALL_SIZES = [
    {"IMAGES": 2, "CHANNELS": 3, "HEIGHT": 7, "WIDTH": 9},
    {"IMAGES": 1, "CHANNELS": 4, "HEIGHT": 8, "WIDTH": 8},
]


def flow_warp(x, flow, other, share):
    height, width = x.shape[2:]
    rows = torch.arange(height, device=x.device, dtype=x.dtype)[:, None] + flow[:, 1]
    columns = torch.arange(width, device=x.device, dtype=x.dtype)[None, :] + flow[:, 0]
    grid = torch.stack((2.0 * columns / (width - 1) - 1.0, 2.0 * rows / (height - 1) - 1.0), dim=-1)
    warped = F.grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=True)
    return share * warped + (1.0 - share) * other


def example_inputs():
    return (
        torch.randn(IMAGES, CHANNELS, HEIGHT, WIDTH),
        torch.randn(IMAGES, 2, HEIGHT, WIDTH) * 3.0,
        torch.randn(IMAGES, CHANNELS, HEIGHT, WIDTH),
        torch.rand(IMAGES, 1, HEIGHT, WIDTH),
    )
