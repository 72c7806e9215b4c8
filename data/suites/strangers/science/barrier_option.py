"""Payoffs of an Asian option with a knock-out barrier over simulated paths whose normal draws are given."""

import torch

PATHS = 131072
STEPS = 252
SMALL_SIZES = [{"PATHS": 7, "STEPS": 5}, {"PATHS": 32, "STEPS": 16}]


class Model(torch.nn.Module):
    def __init__(self, spot, strike, barrier, rate, vol):
        super().__init__()
        self.spot, self.strike, self.barrier, self.rate, self.vol = spot, strike, barrier, rate, vol

    def forward(self, z):
        n = z.shape[1]
        dt = 1.0 / n
        log_path = torch.cumsum((self.rate - 0.5 * self.vol**2) * dt + self.vol * dt**0.5 * z, dim=1)
        path = self.spot * torch.exp(log_path)
        alive = path.amax(dim=1) < self.barrier
        payoff = torch.clamp(path.mean(dim=1) - self.strike, min=0.0) * alive
        discounted = payoff * torch.exp(torch.tensor(-self.rate))
        price = discounted.mean()
        error = discounted.std() / z.shape[0] ** 0.5
        drawdown = (1 - path / torch.cummax(path, dim=1).values).amax(1)
        return price, error, drawdown


def get_inputs():
    return [torch.randn(PATHS, STEPS)]


def get_init_inputs():
    return [100.0, 100.0, 140.0, 0.03, 0.2]
