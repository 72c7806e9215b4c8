"""Autocorrelation of many series by way of frequencies, each divided by its value at no lag.

Occurs in pitch tracking, in Autoformer and in statistics. Memory-bound: two transforms around squares.
"""

import torch

SERIES = 4096
STEPS = 2048
SMALL_SIZES = [{"SERIES": 3, "STEPS": 37}, {"SERIES": 2, "STEPS": 64}]


def autocorrelation(x):
    x = x - x.mean(dim=-1, keepdim=True)
    spectrum = torch.fft.rfft(x, n=2 * x.shape[-1])
    lags = torch.fft.irfft(spectrum * spectrum.conj(), n=2 * x.shape[-1])[..., : x.shape[-1]]
    return lags / (lags[..., :1] + 1e-6)


def example_inputs():
    return (torch.randn(SERIES, STEPS).cumsum(dim=-1) * 0.1,)
