"""A projection's bias and a trained scale of each channel, added to the residual; the sum is normed for the next block.

Occurs in vision transformers with LayerScale (DINOv2, CaiT). Memory-bound: one pass, two outputs.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.bias = nn.Parameter(0.5 * torch.randn(hidden, dtype=torch.float16))
        self.scale = nn.Parameter(0.1 + 0.1 * torch.rand(hidden, dtype=torch.float16))
        self.weight = nn.Parameter(1.0 + 0.2 * torch.randn(hidden, dtype=torch.float16))
        self.shift = nn.Parameter(0.2 * torch.randn(hidden, dtype=torch.float16))

    def forward(self, x, projection):
        x = x + self.scale * (projection + self.bias)
        return x, F.layer_norm(x, (x.shape[-1],), self.weight, self.shift, 1e-6)


images = 64
patches = 1370
hidden = 1024
SMALL_SIZES = [{"images": 2, "patches": 5, "hidden": 67}, {"images": 1, "patches": 8, "hidden": 64}]


def get_inputs():
    return [torch.randn(images, patches, hidden, dtype=torch.float16), torch.randn(images, patches, hidden, dtype=torch.float16)]


def get_init_inputs():
    return [hidden]
