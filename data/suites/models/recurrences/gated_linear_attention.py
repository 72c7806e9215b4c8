"""Linear attention whose state fades by a gate of each step and key channel, written as the loop over steps that defines it.

Occurs in GLA, RWKV-6 and HGRN2. Bound by memory if the state stays on chip: each input is read once.
"""

import torch

BATCH = 4
HEADS = 8
LENGTH = 192
SIZE = 64
SMALL_SIZES = [
    {"BATCH": 2, "HEADS": 3, "LENGTH": 7, "SIZE": 12},
    {"BATCH": 1, "HEADS": 2, "LENGTH": 16, "SIZE": 16},
]


def gated_linear_attention(query, key, value, gate):
    state = torch.zeros(*key.shape[:2], key.shape[3], value.shape[3], dtype=key.dtype, device=key.device)
    outputs = []
    for step in range(key.shape[2]):
        fresh = key[:, :, step, :, None] * value[:, :, step, None, :]
        state = gate[:, :, step, :, None] * state + fresh
        outputs.append((query[:, :, step, :, None] * state).sum(dim=2))
    return torch.stack(outputs, dim=2)


def example_inputs():
    rows = (BATCH, HEADS, LENGTH, SIZE)
    return (
        torch.randn(rows) * SIZE**-0.5,
        torch.randn(rows),
        torch.randn(rows),
        torch.sigmoid(torch.randn(rows) + 2.0),
    )
