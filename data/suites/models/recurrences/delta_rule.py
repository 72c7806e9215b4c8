"""A memory of keys and values that each step corrects by the error of what it recalls (the delta rule), as a loop over steps.

Occurs in DeltaNet and its gated descendants. Bound by memory if the state stays on chip; steps depend on each other.
"""

import torch
import torch.nn.functional as F

BATCH = 4
HEADS = 16
LENGTH = 128
SIZE = 64
SMALL_SIZES = [
    {"BATCH": 2, "HEADS": 3, "LENGTH": 7, "SIZE": 12},
    {"BATCH": 1, "HEADS": 2, "LENGTH": 16, "SIZE": 16},
]


def delta_rule(query, key, value, rate):
    state = torch.zeros(*key.shape[:2], key.shape[3], value.shape[3], dtype=key.dtype, device=key.device)
    outputs = []
    for step in range(key.shape[2]):
        now = key[:, :, step, :, None]
        recalled = (now * state).sum(dim=2)
        error = rate[:, :, step, None] * (value[:, :, step] - recalled)
        state = state + now * error[:, :, None, :]
        outputs.append((query[:, :, step, :, None] * state).sum(dim=2))
    return torch.stack(outputs, dim=2)


def example_inputs():
    rows = (BATCH, HEADS, LENGTH, SIZE)
    return (
        torch.randn(rows) * SIZE**-0.5,
        F.normalize(torch.randn(rows), dim=-1),
        torch.randn(rows),
        torch.sigmoid(torch.randn(BATCH, HEADS, LENGTH)),
    )
