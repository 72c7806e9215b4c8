"""Convolution of each channel with a filter as long as the sequence, by way of frequencies, gated before and after.

Occurs in Hyena, H3 and S4. Memory-bound: transforms of twice the length, products of spectra between them.
"""

import torch

BATCH = 4
CHANNELS = 768
STEPS = 4096
SMALL_SIZES = [{"BATCH": 2, "CHANNELS": 5, "STEPS": 37}, {"BATCH": 1, "CHANNELS": 8, "STEPS": 64}]


def long_convolution(x, before, after, taps, skip):
    steps = x.shape[-1]
    gated = x * before
    spectrum = torch.fft.rfft(gated, n=2 * steps) * torch.fft.rfft(taps, n=2 * steps)
    convolved = torch.fft.irfft(spectrum, n=2 * steps)[..., :steps]
    return (convolved + gated * skip[:, None]) * after


def example_inputs():
    shape = (BATCH, CHANNELS, STEPS)
    return (
        torch.randn(shape),
        torch.randn(shape),
        torch.randn(shape),
        torch.randn(CHANNELS, STEPS) * torch.exp(-torch.linspace(0.0, 8.0, STEPS)),
        torch.randn(CHANNELS),
    )
