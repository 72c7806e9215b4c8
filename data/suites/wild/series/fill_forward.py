"""Fills gaps of series with the last value before them, or the mean where there is none; the mask and the decay of each gap come out, too.

Occurs in models of clinical and sensor data (GRU-D). Memory-bound: a running maximum of positions, then a gather.
"""

import torch

SERIES = 4096
LENGTH = 512
FEATURES = 8
SMALL_SIZES = [{"SERIES": 2, "LENGTH": 7, "FEATURES": 3}, {"SERIES": 2, "LENGTH": 16, "FEATURES": 4}]


def fill_forward(values, mean):
    seen = ~torch.isnan(values)
    time = torch.arange(values.shape[1], device=values.device)[None, :, None]
    last = torch.where(seen, time, -1).cummax(1).values
    known = torch.nan_to_num(values).gather(1, last.clamp(min=0))
    decay = torch.exp(-0.1 * (time - last).float())
    return torch.where(last >= 0, known, mean), seen, decay.to(values.dtype)


def example_inputs():
    values = torch.randn(SERIES, LENGTH, FEATURES, dtype=torch.bfloat16)
    gaps = torch.rand(SERIES, LENGTH, FEATURES) < 0.3
    return torch.where(gaps, float("nan"), values), torch.randn(FEATURES, dtype=torch.bfloat16)
