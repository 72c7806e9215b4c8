"""Logarithm of the energies in mel bands of overlapping windows of a sound.

Occurs before every speech model (Whisper). Memory-bound; windows, transform, squares and bands are four passes as written.
"""

import torch

BATCH = 16
SAMPLES = 160000
WINDOW = 400
HOP = 160
BANDS = 80
SMALL_SIZES = [{"BATCH": 2, "SAMPLES": 1000}, {"BATCH": 1, "SAMPLES": 800}]


def mel_spectrogram(sound, window, bands):
    spectrum = torch.stft(sound, WINDOW, HOP, window=window, center=True, return_complex=True)
    energies = bands @ spectrum[..., :-1].abs().square()
    logarithms = torch.log10(energies.clamp(min=1e-10))
    floor = logarithms.amax(dim=(1, 2), keepdim=True) - 8.0
    return (torch.maximum(logarithms, floor) + 4.0) / 4.0


def example_inputs():
    return torch.randn(BATCH, SAMPLES), torch.hann_window(WINDOW), torch.rand(BANDS, WINDOW // 2 + 1).pow(4)
