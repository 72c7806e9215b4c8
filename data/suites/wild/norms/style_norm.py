"""Gives each channel of one image the mean and spread that another image's channel has.

Occurs in style transfer and StyleGAN (AdaIN). Memory-bound: statistics of both images, then one more pass.
"""

import torch

IMAGES = 16
CHANNELS = 256
HEIGHT = 96
WIDTH = 96
SMALL_SIZES = [
    {"IMAGES": 2, "CHANNELS": 5, "HEIGHT": 7, "WIDTH": 9},
    {"IMAGES": 1, "CHANNELS": 4, "HEIGHT": 8, "WIDTH": 8},
]


def style_norm(content, style):
    mean, variance = style.mean(dim=(2, 3), keepdim=True), style.var(dim=(2, 3), keepdim=True)
    own, spread = content.mean(dim=(2, 3), keepdim=True), content.var(dim=(2, 3), keepdim=True)
    return (content - own) * torch.rsqrt(spread + 1e-5) * torch.sqrt(variance + 1e-5) + mean


def example_inputs():
    shape = (IMAGES, CHANNELS, HEIGHT, WIDTH)
    return torch.randn(shape), torch.randn(shape) * 2.0 + 1.0
