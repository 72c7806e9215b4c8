"""Gaussians of a splatting scene projected to the screen: covariance from scale and quaternion, its image, conic and radius."""

import torch

N = 500000
SMALL_SIZES = [{"N": 13}, {"N": 64}]


class Model(torch.nn.Module):
    def __init__(self, fx, fy, width, height):
        super().__init__()
        self.fx, self.fy, self.width, self.height = fx, fy, width, height

    def forward(self, means, scales, quats, view):
        q = torch.nn.functional.normalize(quats, dim=-1)
        w, x, y, z = q.unbind(-1)
        R = torch.stack(
            [
                1 - 2 * (y * y + z * z),
                2 * (x * y - w * z),
                2 * (x * z + w * y),
                2 * (x * y + w * z),
                1 - 2 * (x * x + z * z),
                2 * (y * z - w * x),
                2 * (x * z - w * y),
                2 * (y * z + w * x),
                1 - 2 * (x * x + y * y),
            ],
            dim=-1,
        ).view(-1, 3, 3)
        M = R * scales.exp().unsqueeze(-2)
        cov = M @ M.transpose(-1, -2)
        cam = means @ view[:3, :3].T + view[:3, 3]
        tx, ty, tz = cam.unbind(-1)
        tz = tz.clamp(min=0.2)
        rz = 1.0 / tz
        nil = torch.zeros_like(rz)
        J = torch.stack([self.fx * rz, nil, -self.fx * tx * rz**2, nil, self.fy * rz, -self.fy * ty * rz**2], -1).reshape(-1, 2, 3)
        W = view[:3, :3]
        cov2d = J @ W @ cov @ W.T @ J.transpose(1, 2)
        a, b, c = cov2d[:, 0, 0] + 0.3, cov2d[:, 0, 1], cov2d[:, 1, 1] + 0.3
        det = (a * c - b * b).clamp(min=1e-6)
        conic = torch.stack([c / det, -b / det, a / det], -1)
        mid = 0.5 * (a + c)
        radius = torch.ceil(3 * torch.sqrt(mid + torch.sqrt((mid * mid - det).clamp(min=0.1))))
        uv = torch.stack([self.fx * tx * rz + self.width / 2, self.fy * ty * rz + self.height / 2], -1)
        visible = (
            (cam[:, 2] > 0.2)
            & (uv[:, 0] + radius > 0)
            & (uv[:, 0] - radius < self.width)
            & (uv[:, 1] + radius > 0)
            & (uv[:, 1] - radius < self.height)
        )
        return uv, conic, torch.where(visible, radius, 0).int(), tz


def get_inputs():
    view = torch.eye(4)
    view[2, 3] = 4.0
    return [torch.randn(N, 3), torch.randn(N, 3) * 0.3 - 3.0, torch.randn(N, 4), view]


def get_init_inputs():
    return [900.0, 900.0, 1280, 720]
