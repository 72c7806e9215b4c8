"""A graph attention network in plain PyTorch, in float32: scores of edges, a softmax over each node's edges, sums; random weights.

`make` is a small one, `large` has a graph of the size of ogbn-arxiv.
"""

from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass(frozen=True)
class Config:
    features: int
    hidden: int
    heads: int
    classes: int
    nodes: int
    edges: int
    layers: int = 3


SMALL = Config(12, 8, 2, 5, 30, 90)
LARGE = Config(128, 64, 4, 40, 169343, 1166243)


class EdgeScores(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.from_source = nn.Parameter(torch.randn(config.heads, config.hidden) * 0.1)
        self.from_target = nn.Parameter(torch.randn(config.heads, config.hidden) * 0.1)

    def forward(self, x, source, target):
        there, here = (x * self.from_source).sum(-1), (x * self.from_target).sum(-1)
        return F.leaky_relu(there[source] + here[target], 0.2)


class EdgeSoftmax(nn.Module):
    def forward(self, scores, target, like):
        index = target[:, None].expand_as(scores)
        top = torch.full_like(like, float("-inf")).scatter_reduce(0, index, scores, "amax")
        powers = torch.exp(scores - top[target])
        return powers / torch.zeros_like(like).scatter_add(0, index, powers)[target]


class Gather(nn.Module):
    def forward(self, x, weights, source, target):
        return torch.zeros_like(x).index_add(0, target, x[source] * weights[..., None])


class Layer(nn.Module):
    def __init__(self, config, before):
        super().__init__()
        self.heads, self.hidden = config.heads, config.hidden
        self.project = nn.Linear(before, config.heads * config.hidden, bias=False)
        self.scores, self.softmax, self.gather = EdgeScores(config), EdgeSoftmax(), Gather()
        self.norm = nn.LayerNorm(config.heads * config.hidden)

    def forward(self, x, source, target):
        x = self.project(x).view(-1, self.heads, self.hidden)
        weights = self.softmax(self.scores(x, source, target), target, x[..., 0])
        return F.elu(self.norm(self.gather(x, weights, source, target).flatten(1)))


class GraphNetwork(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        inner = config.heads * config.hidden
        self.layers = nn.ModuleList(Layer(config, inner if place else config.features) for place in range(config.layers))
        self.head = nn.Linear(inner, config.classes)

    def forward(self, x, source, target):
        for layer in self.layers:
            x = layer(x, source, target)
        return self.head(x)


def make():
    return GraphNetwork(SMALL).eval()


def large():
    return GraphNetwork(LARGE).eval()


def workloads(model):
    config = model.config
    ends = torch.randint(config.nodes, (2, config.edges))
    # each node has an edge to itself, so that no softmax is over nothing
    own = torch.arange(config.nodes)
    return {"graph": (torch.randn(config.nodes, config.features), torch.cat((ends[0], own)), torch.cat((ends[1], own)))}
