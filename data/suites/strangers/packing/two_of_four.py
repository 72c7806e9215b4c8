"""Weights pruned to the two largest of each four.

The values kept, where they were, and the mask, by saliency with the input's norms (Wanda).
"""

import torch

OUT = 4096
IN = 4096
SMALL_SIZES = [{"OUT": 3, "IN": 8}, {"OUT": 16, "IN": 32}]


class Model(torch.nn.Module):
    def forward(self, weight, norm):
        saliency = (weight.abs().float() * norm.sqrt()).view(weight.shape[0], -1, 4)
        order = saliency.argsort(dim=-1, descending=True, stable=True)
        kept = order[..., :2].sort(dim=-1).values
        values = weight.view(weight.shape[0], -1, 4).gather(-1, kept)
        mask = torch.zeros_like(saliency, dtype=torch.bool).scatter_(-1, kept, True)
        meta = (kept[..., 0] | (kept[..., 1] << 2)).view(weight.shape[0], -1, 2)
        meta = (meta[..., 0] | (meta[..., 1] << 4)).to(torch.uint8)
        pruned = torch.where(mask, weight.view(saliency.shape), 0).view_as(weight)
        return values.reshape(weight.shape[0], -1), meta, pruned


def get_inputs():
    return [torch.randn(OUT, IN, dtype=torch.float16), torch.rand(IN) * 10]


def get_init_inputs():
    return []
