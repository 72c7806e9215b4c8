"""A Llama-like decoder: RMSNorm, rotary attention with grouped keys, SwiGLU; weights are drawn at random.

`kernelwright model data/models/decoder.py` takes the small one, `data/models/decoder.py:large` one of a 1B model's widths in bfloat16.
"""

from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass(frozen=True)
class Config:
    layers: int
    hidden: int
    inner: int
    heads: int
    key_heads: int
    vocabulary: int
    dtype: torch.dtype
    prefill: int
    eps: float = 1e-5
    theta: float = 10000.0


SMALL = Config(layers=2, hidden=32, inner=80, heads=4, key_heads=2, vocabulary=64, dtype=torch.float32, prefill=12)
LARGE = Config(layers=4, hidden=2048, inner=8192, heads=32, key_heads=8, vocabulary=32000, dtype=torch.bfloat16, prefill=2048)


class RMSNorm(nn.Module):
    def __init__(self, hidden, eps):
        super().__init__()
        self.weight = nn.Parameter(1.0 + 0.1 * torch.randn(hidden))
        self.eps = eps

    def forward(self, x):
        wide = x.float()
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return (wide * scale).to(x.dtype) * self.weight


class SwiGLU(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.gate = nn.Linear(config.hidden, config.inner, bias=False)
        self.up = nn.Linear(config.hidden, config.inner, bias=False)
        self.down = nn.Linear(config.inner, config.hidden, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Rotary(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config.hidden // config.heads
        self.register_buffer("rates", config.theta ** (-torch.arange(0, width, 2).float() / width), persistent=False)

    def forward(self, x):
        places = torch.arange(x.shape[1], device=x.device, dtype=torch.float32)
        angles = torch.outer(places, self.rates.float())
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


def rotated(x, cos, sin):
    left, right = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-right, left), dim=-1) * sin


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads, self.key_heads, self.width = config.heads, config.key_heads, config.hidden // config.heads
        self.query = nn.Linear(config.hidden, config.heads * self.width, bias=False)
        self.key = nn.Linear(config.hidden, config.key_heads * self.width, bias=False)
        self.value = nn.Linear(config.hidden, config.key_heads * self.width, bias=False)
        self.out = nn.Linear(config.heads * self.width, config.hidden, bias=False)

    def forward(self, x, cos, sin):
        batch, tokens, _ = x.shape
        query = self.query(x).view(batch, tokens, self.heads, self.width).transpose(1, 2)
        key = self.key(x).view(batch, tokens, self.key_heads, self.width).transpose(1, 2)
        value = self.value(x).view(batch, tokens, self.key_heads, self.width).transpose(1, 2)
        query, key = rotated(query, cos, sin), rotated(key, cos, sin)
        key = key.repeat_interleave(self.heads // self.key_heads, dim=1)
        value = value.repeat_interleave(self.heads // self.key_heads, dim=1)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, -1))


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.before_attention = RMSNorm(config.hidden, config.eps)
        self.attention = Attention(config)
        self.before_inner = RMSNorm(config.hidden, config.eps)
        self.inner = SwiGLU(config)

    def forward(self, x, cos, sin):
        x = x + self.attention(self.before_attention(x), cos, sin)
        return x + self.inner(self.before_inner(x))


class Decoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.hidden)
        self.rotary = Rotary(config)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = RMSNorm(config.hidden, config.eps)
        self.head = nn.Linear(config.hidden, config.vocabulary, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        cos, sin = self.rotary(x)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.head(self.norm(x))


def make():
    return Decoder(SMALL).eval()


def large():
    return Decoder(LARGE).to(LARGE.dtype).eval()


def workloads(model):
    config = model.config
    return {"prefill": (torch.randint(config.vocabulary, (1, config.prefill)),)}
