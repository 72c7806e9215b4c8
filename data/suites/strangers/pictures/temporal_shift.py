"""Video features.

An eighth of the channels moved one frame on, an eighth one back, then grouped and pointwise convolutions with a stride of three.
"""

import torch
import torch.nn as nn

CLIPS = 8
FRAMES = 8
CHANNELS = 256
SIDE = 28
SMALL_SIZES = [{"CLIPS": 1, "FRAMES": 3, "CHANNELS": 16, "SIDE": 7}, {"CLIPS": 2, "FRAMES": 4, "CHANNELS": 32, "SIDE": 8}]


class Model(nn.Module):
    def __init__(self, channels, frames):
        super().__init__()
        self.frames = frames
        self.spatial = nn.Conv2d(channels, channels, 3, stride=3, padding=1, groups=8, bias=False)
        self.point = nn.Conv2d(channels, channels, 1)
        self.bfloat16()

    def forward(self, x):
        nt, c, h, w = x.shape
        x = x.view(nt // self.frames, self.frames, c, h, w)
        fold = c // 8
        out = torch.zeros_like(x)
        out[:, :-1, :fold] = x[:, 1:, :fold]
        out[:, 1:, fold : 2 * fold] = x[:, :-1, fold : 2 * fold]
        out[:, :, 2 * fold :] = x[:, :, 2 * fold :]
        out = out.view(nt, c, h, w)
        y = self.point(torch.relu(self.spatial(out)))
        return y.view(-1, self.frames, *y.shape[1:]).mean(dim=(1, 3, 4))


def get_inputs():
    return [torch.randn(CLIPS * FRAMES, CHANNELS, SIDE, SIDE, dtype=torch.bfloat16)]


def get_init_inputs():
    return [CHANNELS, FRAMES]
