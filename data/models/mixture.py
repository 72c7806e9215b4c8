"""A mixture-of-experts decoder like Mixtral and OLMoE: a router, and experts that get the tokens it sends them; random weights.

`make` is a small one, `large` has OLMoE-1B-7B's widths in bfloat16 with two layers. Which expert gets what depends on the data.
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
    experts: int
    chosen: int
    heads: int
    vocabulary: int
    tokens: int
    dtype: torch.dtype


SMALL = Config(2, 32, 48, 4, 2, 4, 64, 12, torch.float32)
LARGE = Config(2, 2048, 1024, 64, 8, 16, 50304, 2048, torch.bfloat16)


class RMSNorm(nn.Module):
    def __init__(self, hidden, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(1.0 + 0.1 * torch.randn(hidden))
        self.eps = eps

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)).to(x.dtype) * self.weight


class Expert(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.gate = nn.Linear(config.hidden, config.inner, bias=False)
        self.up = nn.Linear(config.hidden, config.inner, bias=False)
        self.down = nn.Linear(config.inner, config.hidden, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Router(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.chosen = config.chosen
        self.score = nn.Linear(config.hidden, config.experts, bias=False)

    def forward(self, x):
        shares = F.softmax(self.score(x), dim=-1, dtype=torch.float32)
        weights, experts = torch.topk(shares, self.chosen, dim=-1)
        return (weights / weights.sum(dim=-1, keepdim=True)).to(x.dtype), experts


class Mixture(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.router = Router(config)
        self.experts = nn.ModuleList(Expert(config) for _ in range(config.experts))

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        weights, chosen = self.router(rows)
        found = torch.zeros_like(rows)
        for index, expert in enumerate(self.experts):
            row, place = torch.where(chosen == index)
            if len(row):
                found.index_add_(0, row, expert(rows[row]) * weights[row, place, None])
        return found.view_as(x)


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.hidden, 3 * config.hidden, bias=False)
        self.out = nn.Linear(config.hidden, config.hidden, bias=False)

    def forward(self, x):
        batch, tokens, hidden = x.shape
        query, key, value = self.qkv(x).view(batch, tokens, 3, self.heads, hidden // self.heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, hidden))


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.before_attention, self.attention = RMSNorm(config.hidden), Attention(config)
        self.before_mixture, self.mixture = RMSNorm(config.hidden), Mixture(config)

    def forward(self, x):
        x = x + self.attention(self.before_attention(x))
        return x + self.mixture(self.before_mixture(x))


class Decoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.hidden)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = RMSNorm(config.hidden)
        self.head = nn.Linear(config.hidden, config.vocabulary, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x[:, -1:]))


def make():
    return Decoder(SMALL).eval()


def large():
    return Decoder(LARGE).to(LARGE.dtype).eval()


def workloads(model):
    return {"prefill": (torch.randint(model.config.vocabulary, (1, model.config.tokens)),)}
