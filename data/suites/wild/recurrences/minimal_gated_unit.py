"""A gated average over all steps before, written without a loop by running sums of logarithms.

Occurs in minGRU and minLSTM. Memory-bound: in one pass over the steps it is a linear recurrence.
"""

import torch
import torch.nn.functional as F

BATCH = 8
STEPS = 1024
CHANNELS = 1024
SMALL_SIZES = [{"BATCH": 2, "STEPS": 13, "CHANNELS": 37}, {"BATCH": 1, "STEPS": 16, "CHANNELS": 64}]


def minimal_gated_unit(gate, hidden):
    kept = -F.softplus(gate)
    taken = -F.softplus(-gate)
    candidate = torch.where(hidden >= 0, torch.log(F.relu(hidden) + 0.5), -F.softplus(-hidden))
    total = kept.cumsum(dim=1)
    return torch.exp(total + torch.logcumsumexp(taken + candidate - total, dim=1))


def example_inputs():
    shape = (BATCH, STEPS, CHANNELS)
    return torch.randn(shape), torch.randn(shape)
