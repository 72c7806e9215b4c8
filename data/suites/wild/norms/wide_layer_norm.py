"""Layer norm over rows of 12288, with weights.

Occurs in GPT-3-sized transformers. Memory-bound; a row is larger than one program likes to keep.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(hidden, dtype=torch.bfloat16)
        nn.init.normal_(self.norm.weight, 1.0, 0.2)
        nn.init.normal_(self.norm.bias, 0.0, 0.2)

    def forward(self, x):
        return self.norm(x)


tokens = 4096
hidden = 12288
SMALL_SIZES = [{"tokens": 5, "hidden": 1021}, {"tokens": 8, "hidden": 256}]
MORE_SIZES = [{"tokens": 16}]


def get_inputs():
    return [torch.randn(tokens, hidden, dtype=torch.bfloat16) * 2.0 + 0.5]


def get_init_inputs():
    return [hidden]
