"""Mean squared error of predictions against targets, one number.

Occurs as the loss of regression and of diffusion models. Memory-bound: a reduction of a whole tensor.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, predictions, targets):
        return torch.mean((predictions - targets) ** 2)


batch_size = 8192
features = 4096


def get_inputs():
    return [torch.randn(batch_size, features), torch.randn(batch_size, features)]


def get_init_inputs():
    return []
