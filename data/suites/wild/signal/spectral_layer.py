"""Multiplies the lowest frequencies of images by complex matrices over the channels, and adds a pointwise branch.

Occurs in Fourier neural operators for weather and flow. Memory-bound by the transforms; few frequencies are kept.
"""

import torch
import torch.nn.functional as F

BATCH = 8
CHANNELS = 32
HEIGHT = 256
WIDTH = 256
MODES = 16
SMALL_SIZES = [
    {"BATCH": 2, "CHANNELS": 3, "HEIGHT": 19, "WIDTH": 37},
    {"BATCH": 1, "CHANNELS": 4, "HEIGHT": 32, "WIDTH": 32},
]


def spectral_layer(x, real, imaginary, pointwise):
    spectrum = torch.fft.rfft2(x)
    low = spectrum[:, :, :MODES, :MODES]
    mixed = torch.einsum("bixy,ioxy->boxy", low, torch.complex(real, imaginary))
    whole = F.pad(mixed, (0, spectrum.shape[3] - MODES, 0, spectrum.shape[2] - MODES))
    return F.gelu(torch.fft.irfft2(whole, s=x.shape[-2:]) + torch.einsum("bihw,io->bohw", x, pointwise))


def example_inputs():
    return (
        torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH),
        torch.randn(CHANNELS, CHANNELS, MODES, MODES) * 0.1,
        torch.randn(CHANNELS, CHANNELS, MODES, MODES) * 0.1,
        torch.randn(CHANNELS, CHANNELS) * 0.2,
    )
