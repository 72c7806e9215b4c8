"""A vision transformer: patches, layer norms, attention, GELU; weights are drawn at random.

`make` is a small one, `large` is ViT-L/16 in bfloat16.
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
    patch: int
    image: int
    batch: int
    classes: int
    dtype: torch.dtype


SMALL = Config(2, 32, 4, 8, 32, 2, 10, torch.float32)
LARGE = Config(24, 1024, 16, 16, 224, 16, 1000, torch.bfloat16)


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
        return self.down(F.gelu(self.up(x)))


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.before_attention, self.attention = nn.LayerNorm(config.hidden, eps=1e-6), Attention(config)
        self.before_mlp, self.mlp = nn.LayerNorm(config.hidden, eps=1e-6), MLP(config)

    def forward(self, x):
        x = x + self.attention(self.before_attention(x))
        return x + self.mlp(self.before_mlp(x))


class Patches(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.conv = nn.Conv2d(3, config.hidden, config.patch, stride=config.patch)
        self.first = nn.Parameter(torch.randn(1, 1, config.hidden) * 0.02)
        self.places = nn.Parameter(torch.randn(1, (config.image // config.patch) ** 2 + 1, config.hidden) * 0.02)

    def forward(self, images):
        x = self.conv(images).flatten(2).transpose(1, 2)
        return torch.cat((self.first.expand(x.shape[0], -1, -1), x), dim=1) + self.places


class VisionTransformer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.patches = Patches(config)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.hidden, eps=1e-6)
        self.head = nn.Linear(config.hidden, config.classes)

    def forward(self, images):
        x = self.patches(images)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)[:, 0])


def make():
    return VisionTransformer(SMALL).eval()


def large():
    return VisionTransformer(LARGE).to(LARGE.dtype).eval()


def workloads(model):
    config = model.config
    return {"images": (torch.randn(config.batch, 3, config.image, config.image, dtype=config.dtype),)}
