"""Turns a complex signal down by a phase that grows with time, filters it and keeps every eighth sample.

Occurs in software radio and in ultrasound and MRI pipelines. Memory-bound: one read, an eighth is written.
"""

import torch
import torch.nn.functional as F

CHANNELS = 64
SAMPLES = 262144
TAPS = 64
FACTOR = 8
SMALL_SIZES = [{"CHANNELS": 3, "SAMPLES": 200}, {"CHANNELS": 2, "SAMPLES": 256}]


def mix_and_decimate(real, imaginary, frequency, taps):
    time = torch.arange(real.shape[1], device=real.device, dtype=torch.float32)
    phase = frequency[:, None] * time
    turned = torch.complex(real, imaginary) * torch.polar(torch.ones_like(phase), -phase)
    parts = torch.view_as_real(turned).permute(0, 2, 1).flatten(0, 1)[:, None]
    filtered = F.conv1d(parts, taps[None, None], stride=FACTOR)
    return filtered.view(real.shape[0], 2, -1)


def example_inputs():
    return torch.randn(CHANNELS, SAMPLES), torch.randn(CHANNELS, SAMPLES), torch.rand(CHANNELS) * 3.0, torch.randn(TAPS) * 0.1
