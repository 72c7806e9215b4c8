"""Changes brightness, contrast and saturation of images, each by its own factor, then clamps.

Occurs in augmentation on the device. Memory-bound; contrast needs the mean grey of a whole image first.
"""

import torch

IMAGES = 128
HEIGHT = 224
WIDTH = 224
SMALL_SIZES = [{"IMAGES": 3, "HEIGHT": 7, "WIDTH": 9}, {"IMAGES": 2, "HEIGHT": 16, "WIDTH": 16}]


def grey(x):
    return (0.299 * x[:, 0] + 0.587 * x[:, 1] + 0.114 * x[:, 2])[:, None]


def colour_jitter(x, brightness, contrast, saturation):
    x = (x * brightness[:, None, None, None]).clamp(0.0, 1.0)
    mean = grey(x).mean(dim=(1, 2, 3), keepdim=True)
    x = (mean + (x - mean) * contrast[:, None, None, None]).clamp(0.0, 1.0)
    own = grey(x)
    return (own + (x - own) * saturation[:, None, None, None]).clamp(0.0, 1.0)


def example_inputs():
    factors = [0.6 + 0.8 * torch.rand(IMAGES) for _ in range(3)]
    return torch.rand(IMAGES, 3, HEIGHT, WIDTH), *factors
