"""One step of a causal convolution: the new input enters each channel's window, the window's weighted sum goes through SiLU.

Occurs when a Mamba layer decodes. Memory-bound: the windows are read and written once.
"""

import torch
import torch.nn.functional as F

BATCH = 512
CHANNELS = 8192
WIDTH = 4
SMALL_SIZES = [{"BATCH": 3, "CHANNELS": 67}, {"BATCH": 2, "CHANNELS": 64}]


def causal_convolution_step(x, window, weight, bias):
    window = torch.cat((window[..., 1:], x[..., None]), dim=-1)
    return F.silu((window * weight).sum(dim=-1) + bias), window


def example_inputs():
    return (
        torch.randn(BATCH, CHANNELS, dtype=torch.float16),
        torch.randn(BATCH, CHANNELS, WIDTH, dtype=torch.float16),
        torch.randn(CHANNELS, WIDTH, dtype=torch.float16),
        torch.randn(CHANNELS, dtype=torch.float16),
    )
