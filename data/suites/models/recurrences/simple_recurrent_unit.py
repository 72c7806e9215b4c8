"""A light recurrence whose gates see the state channel by channel, with a highway past it: pointwise work, step after step.

Occurs in SRU and SRU++. Memory-bound: four reads and one write an element if the state stays in registers.
"""

import torch

LENGTH = 160
BATCH = 32
CHANNELS = 1024
SMALL_SIZES = [{"LENGTH": 7, "BATCH": 3, "CHANNELS": 19}, {"LENGTH": 16, "BATCH": 2, "CHANNELS": 32}]


def simple_recurrent_unit(x, candidate, forget, reset, forget_state, reset_state):
    state = torch.zeros_like(x[0])
    outputs = []
    for step in range(x.shape[0]):
        keep = torch.sigmoid(forget[step] + forget_state * state)
        show = torch.sigmoid(reset[step] + reset_state * state)
        state = keep * state + (1.0 - keep) * candidate[step]
        outputs.append(show * torch.tanh(state) + (1.0 - show) * x[step])
    return torch.stack(outputs)


def example_inputs():
    steps = (LENGTH, BATCH, CHANNELS)
    return (
        torch.randn(steps),
        torch.randn(steps),
        torch.randn(steps),
        torch.randn(steps),
        torch.randn(CHANNELS) * 0.5,
        torch.randn(CHANNELS) * 0.5,
    )
