"""Attention from one sequence to another whose end is padding, with the projections around it.

Occurs in encoder-decoder models (Whisper, T5) and in text-conditioned diffusion. Compute-bound in its products.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(channels, channels, dtype=torch.float16)
        self.key_value = nn.Linear(channels, 2 * channels, bias=False, dtype=torch.float16)
        self.out = nn.Linear(channels, channels, dtype=torch.float16)

    def forward(self, x, memory, padding):
        query = self.query(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        key, value = self.key_value(memory).unflatten(-1, (2, self.heads, -1)).permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
        scores = scores.masked_fill(padding[:, None, None, :], -65504.0)
        out = torch.softmax(scores, dim=-1) @ value
        return self.out(out.transpose(1, 2).flatten(2))


batch = 16
tokens = 448
memory_tokens = 1500
channels = 1024
heads = 16
SMALL_SIZES = [
    {"batch": 2, "tokens": 5, "memory_tokens": 7, "channels": 48},
    {"batch": 1, "tokens": 16, "memory_tokens": 16, "channels": 64},
]


def get_inputs():
    lengths = torch.randint(memory_tokens // 2, memory_tokens + 1, (batch, 1))
    return [
        torch.randn(batch, tokens, channels, dtype=torch.float16),
        torch.randn(batch, memory_tokens, channels, dtype=torch.float16),
        torch.arange(memory_tokens)[None] >= lengths,
    ]


def get_init_inputs():
    return [channels, heads]
