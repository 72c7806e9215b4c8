"""Turns halves of the queries and keys of image patches by their row and by their column; a class token stays.

Occurs in vision transformers without tables of positions. Memory-bound: angles follow from where a patch lies.
"""

import torch

BATCH = 8
HEADS = 16
SIDE = 32
WIDTH = 64
SMALL_SIZES = [{"BATCH": 1, "HEADS": 3, "SIDE": 3, "WIDTH": 8}, {"BATCH": 2, "HEADS": 2, "SIDE": 4, "WIDTH": 16}]


def turned(x, angle):
    cos, sin = (part.repeat_interleave(2, -1) for part in (angle.cos(), angle.sin()))
    beside = torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)
    return x * cos + beside * sin


def rotary_grid(queries, keys):
    half = queries.shape[-1] // 2
    at = torch.arange(SIDE, device=queries.device, dtype=torch.float32)
    rate = 100.0 ** (-torch.arange(0, half, 2, device=queries.device).float() / half)
    down = (at[:, None, None] * rate).expand(SIDE, SIDE, -1).flatten(0, 1)
    across = (at[None, :, None] * rate).expand(SIDE, SIDE, -1).flatten(0, 1)
    results = []
    for x in (queries, keys):
        patches = x[:, :, 1:].float()
        patches = torch.cat((turned(patches[..., :half], down), turned(patches[..., half:], across)), dim=-1)
        results.append(torch.cat((x[:, :, :1], patches.to(x.dtype)), dim=2))
    return tuple(results)


def example_inputs():
    shape = (BATCH, HEADS, 1 + SIDE * SIDE, WIDTH)
    return torch.randn(shape).bfloat16(), torch.randn(shape).bfloat16()
