"""One level of a two-dimensional Haar transform, its details shrunk towards zero by a threshold of each band.

Occurs in denoising, compression and wavelet diffusion. Memory-bound: four neighbours in, four bands out.
"""

import torch

IMAGES = 32
CHANNELS = 3
HEIGHT = 512
WIDTH = 512
SMALL_SIZES = [
    {"IMAGES": 2, "CHANNELS": 3, "HEIGHT": 6, "WIDTH": 10},
    {"IMAGES": 1, "CHANNELS": 2, "HEIGHT": 16, "WIDTH": 16},
]


def wavelet_step(x, thresholds):
    a, b = x[..., 0::2, 0::2], x[..., 0::2, 1::2]
    c, d = x[..., 1::2, 0::2], x[..., 1::2, 1::2]
    details = torch.stack((a - b + c - d, a + b - c - d, a - b - c + d), dim=1) / 2
    limit = thresholds[:, None, None, None]
    shrunk = torch.sign(details) * (details.abs() - limit).clamp(min=0.0)
    return (a + b + c + d) / 2, shrunk


def example_inputs():
    return torch.randn(IMAGES, CHANNELS, HEIGHT, WIDTH, dtype=torch.float16), (torch.rand(3) * 0.5).half()
