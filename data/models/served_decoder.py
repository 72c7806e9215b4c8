"""A decoder as it is served, with a cache of keys and values: prefill, and decode at two batch sizes; weights are drawn at random.

`make` and `make_qwen3` are small ones. `llama` and `qwen3` have the widths of Llama-3.2-1B and Qwen3-1.7B in bfloat16 and four layers,
`llama_full` and `qwen3_full` all of them.
"""

from dataclasses import dataclass, replace

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
    width: int
    vocabulary: int
    dtype: torch.dtype
    prefill: int
    batches: tuple = (1, 32)
    normed: bool = False
    eps: float = 1e-6
    theta: float = 500000.0


SMALL = Config(2, 32, 80, 4, 2, 8, 64, torch.float32, 12, (1, 3))
LLAMA = Config(4, 2048, 8192, 32, 8, 64, 128256, torch.bfloat16, 2048)
QWEN3 = Config(4, 2048, 6144, 16, 8, 128, 151936, torch.bfloat16, 2048, normed=True, theta=1000000.0)


class RMSNorm(nn.Module):
    def __init__(self, hidden, eps):
        super().__init__()
        self.weight = nn.Parameter(1.0 + 0.1 * torch.randn(hidden))
        self.eps = eps

    def forward(self, x):
        wide = x.float()
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return (wide * scale).to(x.dtype) * self.weight


class MLP(nn.Module):
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
        rates = config.theta ** (-torch.arange(0, config.width, 2).float() / config.width)
        self.register_buffer("rates", rates, persistent=False)

    def forward(self, x, places):
        angles = places[:, :, None].float() * self.rates.float()
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


def rotated(x, cos, sin):
    left, right = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-right, left), dim=-1) * sin


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads, self.key_heads, self.width = config.heads, config.key_heads, config.width
        self.query = nn.Linear(config.hidden, config.heads * config.width, bias=False)
        self.key = nn.Linear(config.hidden, config.key_heads * config.width, bias=False)
        self.value = nn.Linear(config.hidden, config.key_heads * config.width, bias=False)
        self.out = nn.Linear(config.heads * config.width, config.hidden, bias=False)
        self.query_norm = RMSNorm(config.width, config.eps) if config.normed else nn.Identity()
        self.key_norm = RMSNorm(config.width, config.eps) if config.normed else nn.Identity()

    def forward(self, x, cos, sin, past=None):
        batch, tokens, _ = x.shape
        query = self.query_norm(self.query(x).view(batch, tokens, self.heads, self.width)).transpose(1, 2)
        key = self.key_norm(self.key(x).view(batch, tokens, self.key_heads, self.width)).transpose(1, 2)
        value = self.value(x).view(batch, tokens, self.key_heads, self.width).transpose(1, 2)
        query, key = rotated(query, cos[:, None], sin[:, None]), rotated(key, cos[:, None], sin[:, None])
        if past is not None:
            key, value = torch.cat((past[0], key), dim=2), torch.cat((past[1], value), dim=2)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=past is None, enable_gqa=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, -1)), key, value


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.before_attention = RMSNorm(config.hidden, config.eps)
        self.attention = Attention(config)
        self.before_inner = RMSNorm(config.hidden, config.eps)
        self.inner = MLP(config)

    def forward(self, x, cos, sin, past=None):
        mixed, key, value = self.attention(self.before_attention(x), cos, sin, past)
        x = x + mixed
        return x + self.inner(self.before_inner(x)), key, value


class Decoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.hidden)
        self.rotary = Rotary(config)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = RMSNorm(config.hidden, config.eps)
        self.head = nn.Linear(config.hidden, config.vocabulary, bias=False)

    def forward(self, tokens, places, past=None):
        x = self.embedding(tokens)
        cos, sin = self.rotary(x, places)
        kept = []
        for index, layer in enumerate(self.layers):
            x, key, value = layer(x, cos, sin, None if past is None else past[index])
            kept.append((key, value))
        return self.head(self.norm(x[:, -1:])), kept


def made(config):
    return Decoder(config).to(config.dtype).eval()


def make():
    return made(SMALL)


def make_qwen3():
    return made(replace(SMALL, normed=True))


def llama():
    return made(LLAMA)


def qwen3():
    return made(QWEN3)


def llama_full():
    return made(replace(LLAMA, layers=16))


def qwen3_full():
    return made(replace(QWEN3, layers=28))


def workloads(model):
    config = model.config
    length = config.prefill
    found = {"prefill": (torch.randint(config.vocabulary, (1, length)), torch.arange(length).expand(1, -1).contiguous())}
    for batch in config.batches:
        shape = (batch, config.key_heads, length, config.width)
        past = [tuple(torch.randn(shape, dtype=config.dtype) for _ in range(2)) for _ in range(config.layers)]
        tokens = torch.randint(config.vocabulary, (batch, 1))
        found[f"decode {batch}"] = (tokens, torch.full((batch, 1), length), past)
    return found


# a prompt is answered by a hundred or so tokens
WEIGHTS = {f"decode {batch}": 100.0 for batch in (1, 3, 32)}
