"""A linear layer as a train of three small tensors, contracted from the left."""

import torch
import torch.nn as nn

BATCH = 2048
HEIGHT = 16
J = 16
K = 16
RANK = 16
SMALL_SIZES = [{"BATCH": 3, "HEIGHT": 2, "J": 3, "K": 2, "RANK": 2}, {"BATCH": 8, "HEIGHT": 4, "J": 4, "K": 4, "RANK": 4}]


class Model(nn.Module):
    def __init__(self, i, j, k, r):
        super().__init__()
        self.one = nn.Parameter(torch.randn(i, i, r, dtype=torch.bfloat16) * i**-0.5)
        self.two = nn.Parameter(torch.randn(r, j, j, r, dtype=torch.bfloat16) * (j * r) ** -0.5)
        self.three = nn.Parameter(torch.randn(r, k, k, dtype=torch.bfloat16) * (k * r) ** -0.5)
        self.bias = nn.Parameter(torch.zeros(i * j * k, dtype=torch.bfloat16))
        self.ijk = (i, j, k)

    def forward(self, x):
        x = x.reshape(-1, *self.ijk)
        y = torch.einsum("zxyw,xar->zaryw", x, self.one)
        y = torch.einsum("zaryw,rybs->zabsw", y, self.two)
        y = torch.einsum("zabsw,swc->zabc", y, self.three)
        return torch.relu(y.flatten(1) + self.bias)


def get_inputs():
    return [torch.randn(BATCH, HEIGHT * J * K, dtype=torch.bfloat16)]


def get_init_inputs():
    return [HEIGHT, J, K, RANK]
