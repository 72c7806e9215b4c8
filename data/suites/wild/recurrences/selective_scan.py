"""A diagonal state of each channel, whose decay and input depend on the step, read out at each step.

Occurs in Mamba. Memory-bound: the states stay on chip, each input is read once; the loop over steps is a scan.
"""

import torch

BATCH = 4
STEPS = 512
CHANNELS = 2048
STATES = 16
SMALL_SIZES = [
    {"BATCH": 2, "STEPS": 7, "CHANNELS": 19, "STATES": 5},
    {"BATCH": 1, "STEPS": 16, "CHANNELS": 32, "STATES": 16},
]
MORE_SIZES = [{"STEPS": 2048}]


def selective_scan(x, width, decay, into, out, skip):
    state = torch.zeros(x.shape[0], x.shape[2], decay.shape[1], device=x.device)
    results = []
    for step in range(x.shape[1]):
        now = width[:, step, :, None]
        state = torch.exp(now * decay) * state + now * into[:, step, None, :] * x[:, step, :, None]
        results.append((state * out[:, step, None, :]).sum(dim=-1))
    return torch.stack(results, dim=1) + skip * x


def example_inputs():
    return (
        torch.randn(BATCH, STEPS, CHANNELS),
        torch.rand(BATCH, STEPS, CHANNELS) * 0.1 + 0.001,
        -torch.rand(CHANNELS, STATES) * 4.0 - 0.5,
        torch.randn(BATCH, STEPS, STATES),
        torch.randn(BATCH, STEPS, STATES),
        torch.randn(CHANNELS),
    )
