"""Classifier-free guidance whose result is rescaled to the spread of the conditional prediction.

Occurs at each step of a sampler. Memory-bound; the spread of a whole image is needed before its first element.
"""

import torch

IMAGES = 16
CHANNELS = 16
HEIGHT = 128
WIDTH = 128
SMALL_SIZES = [
    {"IMAGES": 3, "CHANNELS": 3, "HEIGHT": 7, "WIDTH": 9},
    {"IMAGES": 2, "CHANNELS": 4, "HEIGHT": 8, "WIDTH": 8},
]


def rescaled_guidance(unconditional, conditional, guidance, share):
    guided = unconditional + guidance * (conditional - unconditional)
    wanted = conditional.std(dim=(1, 2, 3), keepdim=True)
    rescaled = guided * (wanted / guided.std(dim=(1, 2, 3), keepdim=True))
    return share * rescaled + (1.0 - share) * guided


def example_inputs():
    shape = (IMAGES, CHANNELS, HEIGHT, WIDTH)
    return torch.randn(shape), torch.randn(shape), 7.5, 0.7
