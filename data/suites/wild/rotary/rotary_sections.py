"""Rotary embedding whose channels follow three positions: time, height and width of a patch.

Occurs in Qwen2-VL and its successors for tokens of text, images and video. Memory-bound.
"""

import torch

TOKENS = 8192
HEADS = 28
HEAD_SIZE = 128
TIME = 16
HEIGHT = 24
WIDTH = 24
SMALL_SIZES = [{"TOKENS": 5, "HEADS": 3}, {"TOKENS": 8, "HEADS": 2}]
MORE_SIZES = [{"TOKENS": 256}]


def rotary_sections(query, positions, frequencies):
    angles = positions.float()[:, :, None] * frequencies
    parts = angles.split([TIME, HEIGHT, WIDTH], dim=-1)
    angles = torch.cat([part[index] for index, part in enumerate(parts)], dim=-1).repeat(1, 2)
    cosine, sine = angles.cos()[:, None].to(query.dtype), angles.sin()[:, None].to(query.dtype)
    first, second = query.chunk(2, dim=-1)
    return query * cosine + torch.cat((-second, first), dim=-1) * sine


def example_inputs():
    frequencies = 10000.0 ** (-torch.arange(HEAD_SIZE // 2) / (HEAD_SIZE // 2))
    return torch.randn(TOKENS, HEADS, HEAD_SIZE, dtype=torch.bfloat16), torch.randint(0, 64, (3, TOKENS)), frequencies
