"""A running mean of values, weighed by the exponents of their keys and decaying by channel, kept stable by a running maximum.

Occurs in RWKV-4. Memory-bound: three numbers of state a channel, each input is read once.
"""

import torch

BATCH = 8
STEPS = 256
CHANNELS = 4096
SMALL_SIZES = [{"BATCH": 2, "STEPS": 7, "CHANNELS": 37}, {"BATCH": 1, "STEPS": 16, "CHANNELS": 64}]
MORE_SIZES = [{"STEPS": 1024}]


def weighted_key_value(key, value, decay, bonus):
    above = torch.zeros_like(key[:, 0])
    below = torch.zeros_like(above)
    largest = torch.full_like(above, -1e38)
    results = []
    for step in range(key.shape[1]):
        k, v = key[:, step], value[:, step]
        peak = torch.maximum(largest, bonus + k)
        past, now = torch.exp(largest - peak), torch.exp(bonus + k - peak)
        results.append((past * above + now * v) / (past * below + now))
        peak = torch.maximum(largest - decay, k)
        past, now = torch.exp(largest - decay - peak), torch.exp(k - peak)
        above, below, largest = past * above + now * v, past * below + now, peak
    return torch.stack(results, dim=1)


def example_inputs():
    shape = (BATCH, STEPS, CHANNELS)
    return torch.randn(shape), torch.randn(shape), torch.rand(CHANNELS) * 2.0 + 0.01, torch.randn(CHANNELS)
