"""h[t] = a[t] * h[t - 1] + x[t] along the rows."""

import torch

ROWS = 4096
STEPS = 1024
SMALL_SIZES = [{"ROWS": 3, "STEPS": 70}, {"ROWS": 1, "STEPS": 5}]


def recurrence(a, x):
    h = torch.zeros_like(x[:, 0])
    found = []
    for t in range(x.shape[1]):
        h = a[:, t] * h + x[:, t]
        found.append(h)
    return torch.stack(found, dim=1)


def example_inputs():
    return torch.rand(ROWS, STEPS) * 0.9, torch.randn(ROWS, STEPS)
