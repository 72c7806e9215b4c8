"""Rotary embedding of image patches: half of each head turns by the row, half by the column.

Occurs in vision encoders such as EVA, Pixtral and SAM 2. Memory-bound.
"""

import torch

IMAGES = 8
ROWS = 64
COLUMNS = 64
HEADS = 16
HEAD_SIZE = 64
SMALL_SIZES = [
    {"IMAGES": 2, "ROWS": 3, "COLUMNS": 5, "HEADS": 3, "HEAD_SIZE": 12},
    {"IMAGES": 1, "ROWS": 4, "COLUMNS": 4, "HEADS": 2, "HEAD_SIZE": 32},
]


def rotary_axial(x, frequencies):
    height, width = x.shape[1:3]
    rows = torch.arange(height, device=x.device).float()[:, None] * frequencies
    columns = torch.arange(width, device=x.device).float()[:, None] * frequencies
    rows = rows[:, None, :].expand(height, width, -1)
    columns = columns[None, :, :].expand(height, width, -1)
    angles = torch.cat((rows, columns), dim=-1)[:, :, None, :]
    even, odd = x[..., 0::2].float(), x[..., 1::2].float()
    turned = torch.stack((even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos()), dim=-1)
    return turned.flatten(-2).to(x.dtype)


def example_inputs():
    frequencies = 100.0 ** (-torch.arange(HEAD_SIZE // 4) / (HEAD_SIZE // 4))
    return torch.randn(IMAGES, ROWS, COLUMNS, HEADS, HEAD_SIZE, dtype=torch.float16), frequencies
