"""A linear layer whose weights are indices into sixteen values, scaled by the largest weight of each block (NF4).

Occurs in QLoRA's frozen layers. Memory-bound while tokens are few: indices are two to a byte, and the table stays on chip.
"""

import torch
import torch.nn as nn

CODES = (-1.0, -0.6962, -0.5251, -0.3949, -0.2844, -0.1848, -0.0911, 0.0, 0.0796, 0.1609, 0.2461, 0.3379, 0.4407, 0.5626, 0.7230, 1.0)


class Model(nn.Module):
    def __init__(self, inputs, outputs, block):
        super().__init__()
        self.block = block
        self.register_buffer("codebook", torch.tensor(CODES))
        self.register_buffer("packed", torch.randint(0, 256, (outputs, inputs // 2), dtype=torch.uint8))
        self.register_buffer("largest", 0.02 + 0.03 * torch.rand(outputs, inputs // block))

    def forward(self, x):
        codes = torch.stack((self.packed >> 4, self.packed & 15), dim=-1).flatten(1).long()
        weight = self.codebook[codes].reshape(codes.shape[0], -1, self.block) * self.largest[..., None]
        return x @ weight.reshape(codes.shape).to(x.dtype).t()


tokens = 512
inputs = 4096
outputs = 4096
block = 64
SMALL_SIZES = [{"tokens": 3, "inputs": 192, "outputs": 19}, {"tokens": 16, "inputs": 128, "outputs": 32}]
MORE_SIZES = [{"tokens": 1}]


def get_inputs():
    return [torch.randn(tokens, inputs, dtype=torch.bfloat16)]


def get_init_inputs():
    return [inputs, outputs, block]
