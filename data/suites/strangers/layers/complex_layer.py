"""A complex linear layer with modReLU, normalised by the mean power of each sample."""

import torch
import torch.nn as nn

BATCH = 4096
IN = 512
OUT = 512
SMALL_SIZES = [{"BATCH": 3, "IN": 5, "OUT": 7}, {"BATCH": 16, "IN": 16, "OUT": 32}]


class Model(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_out, n_in, 2) * (2 * n_in) ** -0.5)
        self.bias = nn.Parameter(torch.full((n_out,), -0.1))

    def forward(self, x):
        z = torch.view_as_complex(x)
        w = torch.view_as_complex(self.weight)
        y = z @ w.t()
        magnitude = y.abs()
        y = torch.relu(magnitude + self.bias) * (y / (magnitude + 1e-5))
        power = (y.real**2 + y.imag**2).mean(-1, keepdim=True)
        y = y * torch.rsqrt(power + 1e-6)
        return torch.view_as_real(y), torch.angle(y.conj() * y.roll(1, -1)).cos()


def get_inputs():
    return [torch.randn(BATCH, IN, 2)]


def get_init_inputs():
    return [IN, OUT]
