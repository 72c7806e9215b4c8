"""Point features pooled into hashed voxels: maximum by index_reduce, mean by scatter_reduce, and both carried back to the points."""

import torch

POINTS = 65536
CHANNELS = 32
VOXELS = 8192
SMALL_SIZES = [{"POINTS": 23, "CHANNELS": 3, "VOXELS": 7}, {"POINTS": 64, "CHANNELS": 16, "VOXELS": 16}]


class Model(torch.nn.Module):
    def __init__(self, voxels, cell):
        super().__init__()
        self.voxels = voxels
        self.cell = cell

    def forward(self, xyz, features):
        grid = torch.floor(xyz / self.cell).long()
        mixed = (grid[:, 0] * 73856093) ^ (grid[:, 1] * 19349663) ^ (grid[:, 2] * 83492791)
        slot = torch.remainder(mixed, self.voxels)
        most = torch.full((self.voxels, features.shape[1]), -65504.0, dtype=features.dtype, device=features.device)
        most = most.index_reduce(0, slot, features, "amax", include_self=False)
        wide = slot[:, None].expand(-1, features.shape[1])
        mean = torch.zeros(self.voxels, features.shape[1], device=features.device).scatter_reduce(
            0, wide, features.float(), "mean", include_self=False
        )
        return torch.cat([features, most[slot], (features.float() - mean[slot]).to(features.dtype)], dim=1)


def get_inputs():
    return [torch.rand(POINTS, 3) * 8, torch.randn(POINTS, CHANNELS, dtype=torch.float16)]


def get_init_inputs():
    return [VOXELS, 0.5]
