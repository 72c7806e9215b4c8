"""Frames of a video decoder (NV12 bytes) to normalised RGB in half precision, with a half-size luma pyramid by pixel_unshuffle."""

import torch

FRAMES = 16
HEIGHT = 720
WIDTH = 1280
SMALL_SIZES = [{"FRAMES": 1, "HEIGHT": 4, "WIDTH": 6}, {"FRAMES": 2, "HEIGHT": 8, "WIDTH": 16}]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1))

    def forward(self, luma, chroma):
        y = 1.164 * (luma.float() - 16)
        uv = chroma.float() - 128
        uv = uv.repeat_interleave(2, dim=1).repeat_interleave(2, dim=2)
        u, v = uv[..., 0], uv[..., 1]
        r = y + 1.596 * v
        g = y - 0.392 * u - 0.813 * v
        b = y + 2.017 * u
        rgb = torch.stack([r, g, b], dim=1).clamp_(0, 255).div_(255)
        small = torch.nn.functional.pixel_unshuffle(luma.float().unsqueeze(1), 2).mean(1)
        return ((rgb - self.mean) / self.std).half(), small.round().to(torch.uint8)


def get_inputs():
    return [
        torch.randint(16, 236, (FRAMES, HEIGHT, WIDTH), dtype=torch.uint8),
        torch.randint(16, 241, (FRAMES, HEIGHT // 2, WIDTH // 2, 2), dtype=torch.uint8),
    ]


def get_init_inputs():
    return []
