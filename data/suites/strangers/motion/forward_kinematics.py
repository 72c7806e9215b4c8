"""Poses of an arm's flanges from its joint angles, with the links' distances to a floor."""

import torch
import torch.nn as nn

BATCH = 32768
JOINTS = 7
SMALL_SIZES = [{"BATCH": 5}, {"BATCH": 64}]


class Model(nn.Module):
    def __init__(self, joints):
        super().__init__()
        self.register_buffer("a", torch.linspace(0.0, 0.3, joints))
        self.register_buffer("d", torch.linspace(0.35, 0.1, joints))
        self.register_buffer("alpha", torch.tensor([1.5708, -1.5708] * joints)[:joints])
        self.joints = joints

    def link(self, i, theta):
        ct, st = torch.cos(theta), torch.sin(theta)
        ca, sa = torch.cos(self.alpha[i]), torch.sin(self.alpha[i])
        zero, one = torch.zeros_like(theta), torch.ones_like(theta)
        row0 = torch.stack([ct, -st * ca, st * sa, self.a[i] * ct], dim=-1)
        row1 = torch.stack([st, ct * ca, -ct * sa, self.a[i] * st], dim=-1)
        row2 = torch.stack([zero, sa.expand_as(theta), ca.expand_as(theta), self.d[i].expand_as(theta)], dim=-1)
        row3 = torch.stack([zero, zero, zero, one], dim=-1)
        return torch.stack([row0, row1, row2, row3], dim=-2)

    def forward(self, q):
        T = torch.eye(4, device=q.device, dtype=q.dtype).expand(q.shape[0], 4, 4)
        origins = []
        for i in range(self.joints):
            T = T @ self.link(i, q[:, i])
            origins.append(T[:, :3, 3])
        origins = torch.stack(origins, dim=1)
        clearance = origins[..., 2].amin(dim=1)
        return T, origins, clearance


def get_inputs():
    return [torch.rand(BATCH, JOINTS) * 6.0 - 3.0]


def get_init_inputs():
    return [JOINTS]
