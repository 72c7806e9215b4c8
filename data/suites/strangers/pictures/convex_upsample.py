"""Flow made eight times larger by weights over nine neighbours (RAFT).

Unfold, softmax of the mask, a weighted sum, and pixels put in place.
"""

import torch
import torch.nn.functional as F

BATCH = 4
HEIGHT = 55
WIDTH = 128
FACTOR = 8
SMALL_SIZES = [{"BATCH": 1, "HEIGHT": 3, "WIDTH": 5, "FACTOR": 2}, {"BATCH": 2, "HEIGHT": 4, "WIDTH": 8, "FACTOR": 4}]


class Model(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, flow, mask):
        N, _, H, W = flow.shape
        f = self.factor
        mask = mask.view(N, 1, 9, f, f, H, W)
        mask = torch.softmax(mask * 0.25, dim=2)
        up = F.unfold(f * flow, [3, 3], padding=1)
        up = up.view(N, 2, 9, 1, 1, H, W)
        up = torch.sum(mask * up, dim=2)
        up = up.permute(0, 1, 4, 2, 5, 3)
        return up.reshape(N, 2, f * H, f * W)


def get_inputs():
    return [
        torch.randn(BATCH, 2, HEIGHT, WIDTH, dtype=torch.bfloat16),
        torch.randn(BATCH, 9 * FACTOR**2, HEIGHT, WIDTH, dtype=torch.bfloat16),
    ]


def get_init_inputs():
    return [FACTOR]
