"""A Mamba-2 model: a causal convolution, a state-space scan in chunks as its paper's listing has it, a gated norm; random weights.

`make` is a small one, `large` has the widths of mamba2-1.3b in bfloat16 with four layers.
"""

from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass(frozen=True)
class Config:
    layers: int
    hidden: int
    width: int
    state: int
    chunk: int
    vocabulary: int
    tokens: int
    dtype: torch.dtype
    window: int = 4


SMALL = Config(2, 32, 8, 16, 8, 64, 24, torch.float32)
LARGE = Config(4, 2048, 64, 128, 256, 50288, 2048, torch.bfloat16)


class RMSNorm(nn.Module):
    def __init__(self, hidden, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(1.0 + 0.1 * torch.randn(hidden))
        self.eps = eps

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)).to(x.dtype) * self.weight


class GatedNorm(RMSNorm):
    def forward(self, x, gate):
        wide = x.float() * F.silu(gate.float())
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)).to(x.dtype) * self.weight


class CausalConv(nn.Module):
    def __init__(self, channels, window):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, window, groups=channels, padding=window - 1)

    def forward(self, x):
        return F.silu(self.conv(x.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))


def segment_sums(x):
    length = x.shape[-1]
    sums = torch.cumsum(x, dim=-1)
    found = sums[..., :, None] - sums[..., None, :]
    return found.masked_fill(~torch.ones(length, length, dtype=torch.bool, device=x.device).tril(), float("-inf"))


class Scan(nn.Module):
    def __init__(self, chunk):
        super().__init__()
        self.chunk = chunk

    def forward(self, x, decay, b, c):
        batch, tokens, heads, _ = x.shape
        parts = tokens // self.chunk
        x, b, c = (each.reshape(batch, parts, self.chunk, *each.shape[2:]).float() for each in (x, b, c))
        decay = decay.reshape(batch, parts, self.chunk, heads).permute(0, 3, 1, 2)
        sums = torch.cumsum(decay, dim=-1)
        inside = torch.einsum("bzln,bzsn,bhzls,bzshp->bzlhp", c, b, torch.exp(segment_sums(decay)), x)
        left = torch.exp(sums[..., -1:] - sums)
        states = torch.einsum("bzln,bhzl,bzlhp->bzhpn", b, left, x)
        states = torch.cat((torch.zeros_like(states[:, :1]), states), dim=1)
        between = torch.exp(segment_sums(F.pad(sums[..., -1], (1, 0))))
        states = torch.einsum("bhzc,bchpn->bzhpn", between, states)[:, :-1]
        before = torch.einsum("bzln,bzhpn,bhzl->bzlhp", c, states, torch.exp(sums))
        return (inside + before).reshape(batch, tokens, heads, -1)


class Mixer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.inner, self.state, self.width = 2 * config.hidden, config.state, config.width
        self.heads = self.inner // config.width
        self.into = nn.Linear(config.hidden, 2 * self.inner + 2 * config.state + self.heads, bias=False)
        self.conv = CausalConv(self.inner + 2 * config.state, config.window)
        self.scan = Scan(config.chunk)
        self.step_bias = nn.Parameter(torch.rand(self.heads))
        self.rate = nn.Parameter(torch.log(torch.arange(1, self.heads + 1).float()))
        self.skip = nn.Parameter(torch.ones(self.heads))
        self.norm = GatedNorm(self.inner)
        self.out = nn.Linear(self.inner, config.hidden, bias=False)

    def forward(self, u):
        batch, tokens, _ = u.shape
        gate, mixed, step = self.into(u).split((self.inner, self.inner + 2 * self.state, self.heads), dim=-1)
        x, b, c = self.conv(mixed).split((self.inner, self.state, self.state), dim=-1)
        step = F.softplus(step.float() + self.step_bias.float())
        x = x.reshape(batch, tokens, self.heads, self.width)
        y = self.scan(x * step[..., None], -torch.exp(self.rate.float()) * step, b, c)
        y = y + x * self.skip[:, None]
        return self.out(self.norm(y.reshape(batch, tokens, -1).to(u.dtype), gate))


class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.hidden)
        self.norms = nn.ModuleList(RMSNorm(config.hidden) for _ in range(config.layers))
        self.mixers = nn.ModuleList(Mixer(config) for _ in range(config.layers))
        self.norm = RMSNorm(config.hidden)
        self.head = nn.Linear(config.hidden, config.vocabulary, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for norm, mixer in zip(self.norms, self.mixers, strict=True):
            x = x + mixer(norm(x))
        return self.head(self.norm(x[:, -1:]))


def make():
    return Model(SMALL).eval()


def large():
    return Model(LARGE).to(LARGE.dtype).eval()


def workloads(model):
    return {"prefill": (torch.randint(model.config.vocabulary, (1, model.config.tokens)),)}
