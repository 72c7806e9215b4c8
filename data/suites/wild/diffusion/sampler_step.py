"""One step of a deterministic sampler: the clean image from the predicted noise, clamped, then the next noisy image.

Occurs at each step of DDIM. Memory-bound: one pass, two outputs, coefficients looked up by each image's own step.
"""

import torch

IMAGES = 32
CHANNELS = 4
HEIGHT = 128
WIDTH = 128
STEPS = 1000
SMALL_SIZES = [
    {"IMAGES": 3, "CHANNELS": 3, "HEIGHT": 7, "WIDTH": 9, "STEPS": 19},
    {"IMAGES": 2, "CHANNELS": 4, "HEIGHT": 8, "WIDTH": 8, "STEPS": 32},
]


def sampler_step(noisy, noise, signal, now, after):
    current, following = signal[now].view(-1, 1, 1, 1), signal[after].view(-1, 1, 1, 1)
    clean = ((noisy - (1.0 - current).sqrt() * noise) / current.sqrt()).clamp(-1.0, 1.0)
    noise = (noisy - current.sqrt() * clean) / (1.0 - current).sqrt()
    return following.sqrt() * clean + (1.0 - following).sqrt() * noise, clean


def example_inputs():
    shape = (IMAGES, CHANNELS, HEIGHT, WIDTH)
    now = torch.randint(1, STEPS, (IMAGES,))
    return torch.randn(shape), torch.randn(shape), torch.linspace(0.99, 0.01, STEPS), now, now - 1
