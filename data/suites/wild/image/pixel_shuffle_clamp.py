"""Takes channels apart into pixels, adds the image that was enlarged before, and clamps to what can be shown.

Occurs at the end of super-resolution networks (ESPCN, EDSR). Memory-bound; the shuffle is only another order of reading.
"""

import torch
import torch.nn.functional as F

IMAGES = 8
HEIGHT = 360
WIDTH = 640
FACTOR = 3
SMALL_SIZES = [{"IMAGES": 2, "HEIGHT": 5, "WIDTH": 7}, {"IMAGES": 1, "HEIGHT": 8, "WIDTH": 8}]


def pixel_shuffle_clamp(x, enlarged):
    return torch.clamp(F.pixel_shuffle(x, FACTOR) + enlarged, 0.0, 1.0)


def example_inputs():
    return (
        torch.randn(IMAGES, 3 * FACTOR**2, HEIGHT, WIDTH, dtype=torch.float16) * 0.1,
        torch.rand(IMAGES, 3, HEIGHT * FACTOR, WIDTH * FACTOR).half(),
    )
