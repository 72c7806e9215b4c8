"""The difference of two causal attentions over the same values, each head's result normed.

Occurs in the Differential Transformer. Compute-bound; both softmaxes share one pass over the values.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, head_size):
        super().__init__()
        self.share = nn.Parameter(torch.rand(1, dtype=torch.bfloat16) * 0.5 + 0.3)
        self.weight = nn.Parameter(1.0 + 0.2 * torch.randn(2 * head_size, dtype=torch.bfloat16))

    def forward(self, query, key, value):
        weights = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
        later = torch.ones(weights.shape[-2:], dtype=torch.bool, device=weights.device).triu(1)
        weights = torch.softmax(weights.masked_fill(later, float("-inf")).float(), dim=-1)
        first, second = weights.unflatten(1, (-1, 2)).unbind(2)
        out = (first - self.share.float() * second).to(value.dtype) @ value
        return F.rms_norm(out, (out.shape[-1],), self.weight, 1e-5) * 0.2


batch = 2
heads = 16
sequence = 2048
head_size = 64
SMALL_SIZES = [
    {"batch": 2, "heads": 3, "sequence": 19, "head_size": 12},
    {"batch": 1, "heads": 2, "sequence": 16, "head_size": 32},
]


def get_inputs():
    return [
        torch.randn(batch, 2 * heads, sequence, head_size, dtype=torch.bfloat16),
        torch.randn(batch, 2 * heads, sequence, head_size, dtype=torch.bfloat16),
        torch.randn(batch, heads, sequence, 2 * head_size, dtype=torch.bfloat16),
    ]


def get_init_inputs():
    return [head_size]
