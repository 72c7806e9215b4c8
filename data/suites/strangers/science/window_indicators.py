"""Indicators of price series by moving windows: bands, stochastic oscillator, and the rank of today within the window."""

import torch

ASSETS = 2048
DAYS = 1260
WINDOW = 20
SMALL_SIZES = [{"ASSETS": 3, "DAYS": 17, "WINDOW": 5}, {"ASSETS": 4, "DAYS": 32, "WINDOW": 8}]


class Model(torch.nn.Module):
    def __init__(self, window):
        super().__init__()
        self.window = window

    def forward(self, close, high, low):
        w = close.unfold(1, self.window, 1)
        mean = w.mean(-1)
        std = w.std(-1, unbiased=False)
        last = w[..., -1]
        z = (last - mean) / (std + 1e-6)
        top = high.unfold(1, self.window, 1).max(-1).values
        bottom = low.unfold(1, self.window, 1).min(-1).values
        k = 100 * (last - bottom) / (top - bottom + 1e-6)
        d = torch.nn.functional.avg_pool1d(k.unsqueeze(1), 3, stride=1, padding=1).squeeze(1)
        rank = (w < last.unsqueeze(-1)).float().mean(-1)
        signal = torch.where(z > 2, -1.0, torch.where(z < -2, 1.0, 0.0)) * (rank - 0.5).abs()
        return mean + 2 * std, mean - 2 * std, k, d, signal


def get_inputs():
    close = torch.randn(ASSETS, DAYS).cumsum(1) * 0.1 + 50
    return [close, close + torch.rand(ASSETS, DAYS), close - torch.rand(ASSETS, DAYS)]


def get_init_inputs():
    return [WINDOW]
