"""Normalises over a middle dimension of odd size, scales it, and lets the other half of the channels gate the result.

Occurs in gated convolution stacks for audio and in volumes of odd depth. Memory-bound: one read, half a write.
"""

import torch

BATCH = 8
CHANNELS = 211
PLACES = 8191
SMALL_SIZES = [{"BATCH": 2, "CHANNELS": 5, "PLACES": 19}, {"BATCH": 1, "CHANNELS": 16, "PLACES": 32}]


def middle_norm_gate(x, weight, bias):
    spread, mean = torch.var_mean(x, dim=1, keepdim=True, correction=0)
    normed = (x - mean) * torch.rsqrt(spread + 1e-5) * weight[:, :, None] + bias[:, :, None]
    gate, shown = normed[:, :, :, 0], normed[:, :, :, 1]
    return torch.sigmoid(gate) * shown


def example_inputs():
    return (
        torch.randn(BATCH, CHANNELS, PLACES, 2) * 2.0 + 1.0,
        1.0 + 0.2 * torch.randn(CHANNELS, 1),
        0.2 * torch.randn(CHANNELS, 1),
    )
