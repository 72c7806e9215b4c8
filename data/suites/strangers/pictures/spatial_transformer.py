"""Pictures turned upright by an affine map that a small network reads off them; what lies outside is reflected."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 32
CHANNELS = 16
HEIGHT = 128
WIDTH = 128
SMALL_SIZES = [{"BATCH": 2, "CHANNELS": 4, "HEIGHT": 9, "WIDTH": 11}, {"BATCH": 1, "CHANNELS": 8, "HEIGHT": 16, "WIDTH": 16}]


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 5, stride=3, padding=2, groups=channels // 2)
        self.head = nn.Linear(channels * 9, 6)
        nn.init.normal_(self.head.weight, std=1e-2)
        self.register_buffer("identity", torch.tensor([1.0, 0.0, 0.0, 0.0, 1.0, 0.0]))
        self.half()

    def forward(self, x):
        seen = F.adaptive_avg_pool2d(F.leaky_relu(self.conv(x), 0.1), 3).flatten(1)
        theta = (self.head(seen) + self.identity).view(-1, 2, 3).float()
        grid = F.affine_grid(theta, x.shape, align_corners=False)
        return F.grid_sample(x.float(), grid, mode="bilinear", padding_mode="reflection", align_corners=False).to(x.dtype)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH, dtype=torch.float16)]


def get_init_inputs():
    return [CHANNELS]
