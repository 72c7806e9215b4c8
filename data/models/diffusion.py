"""A stack of diffusion-transformer blocks: layer norms that the time step shifts and scales, attention, GELU, gates; random weights.

`make` is a small one, `large` has DiT-XL/2's widths in bfloat16 with eight of its blocks.
"""

from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass(frozen=True)
class Config:
    layers: int
    hidden: int
    heads: int
    batch: int
    tokens: int
    dtype: torch.dtype


SMALL = Config(2, 32, 4, 2, 9, torch.float32)
LARGE = Config(8, 1152, 16, 8, 256, torch.bfloat16)


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.hidden, 3 * config.hidden)
        self.out = nn.Linear(config.hidden, config.hidden)

    def forward(self, x):
        batch, tokens, hidden = x.shape
        query, key, value = self.qkv(x).view(batch, tokens, 3, self.heads, hidden // self.heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value)
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, hidden))


class MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.up = nn.Linear(config.hidden, 4 * config.hidden)
        self.down = nn.Linear(4 * config.hidden, config.hidden)

    def forward(self, x):
        return self.down(F.gelu(self.up(x), approximate="tanh"))


class Modulated(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.norm = nn.LayerNorm(config.hidden, eps=1e-6, elementwise_affine=False)

    def forward(self, x, shift, scale):
        return self.norm(x) * (1 + scale[:, None]) + shift[:, None]


class Gate(nn.Module):
    def forward(self, x, y, gate):
        return x + gate[:, None] * y


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.before_attention, self.attention, self.after_attention = Modulated(config), Attention(config), Gate()
        self.before_mlp, self.mlp, self.after_mlp = Modulated(config), MLP(config), Gate()
        self.modulation = nn.Linear(config.hidden, 6 * config.hidden)

    def forward(self, x, condition):
        shift, scale, gate, shift_mlp, scale_mlp, gate_mlp = self.modulation(F.silu(condition)).chunk(6, dim=-1)
        x = self.after_attention(x, self.attention(self.before_attention(x, shift, scale)), gate)
        return self.after_mlp(x, self.mlp(self.before_mlp(x, shift_mlp, scale_mlp)), gate_mlp)


class Stack(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))

    def forward(self, x, condition):
        for block in self.blocks:
            x = block(x, condition)
        return x


def make():
    return Stack(SMALL).eval()


def large():
    return Stack(LARGE).to(LARGE.dtype).eval()


def workloads(model):
    config = model.config
    x = torch.randn(config.batch, config.tokens, config.hidden, dtype=config.dtype)
    return {"step": (x, torch.randn(config.batch, config.hidden, dtype=config.dtype))}
