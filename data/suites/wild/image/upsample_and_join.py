"""Doubles an image by its nearest pixels and joins it with the skip connection's channels; the result goes through SiLU.

Occurs on the way up of every U-Net. Memory-bound: neither the enlarged image nor the joined one need be copied.
"""

import torch
import torch.nn.functional as F

IMAGES = 4
CHANNELS = 320
SKIPPED = 160
HEIGHT = 64
WIDTH = 64
SMALL_SIZES = [
    {"IMAGES": 2, "CHANNELS": 5, "SKIPPED": 3, "HEIGHT": 5, "WIDTH": 7},
    {"IMAGES": 1, "CHANNELS": 8, "SKIPPED": 4, "HEIGHT": 8, "WIDTH": 8},
]


def upsample_and_join(x, skipped):
    return F.silu(torch.cat((F.interpolate(x, scale_factor=2.0, mode="nearest"), skipped), dim=1))


def example_inputs():
    return (
        torch.randn(IMAGES, CHANNELS, HEIGHT, WIDTH, dtype=torch.bfloat16),
        torch.randn(IMAGES, SKIPPED, HEIGHT * 2, WIDTH * 2, dtype=torch.bfloat16),
    )
