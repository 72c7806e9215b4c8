"""RMS norm of each head of queries and keys, then their rotary embedding.

Occurs in Qwen3 and Gemma 3 between the projection and the attention. Memory-bound: a head fits into registers, so one pass does.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, head_size, eps):
        super().__init__()
        self.eps = eps
        self.query_weight = nn.Parameter(1.0 + 0.2 * torch.randn(head_size, dtype=torch.bfloat16))
        self.key_weight = nn.Parameter(1.0 + 0.2 * torch.randn(head_size, dtype=torch.bfloat16))

    def normed(self, x, weight):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return weight * wide.to(x.dtype)

    def forward(self, query, key, cosine, sine):
        query, key = self.normed(query, self.query_weight), self.normed(key, self.key_weight)
        half = query.shape[-1] // 2
        turned = [torch.cat((-x[..., half:], x[..., :half]), dim=-1) for x in (query, key)]
        return query * cosine + turned[0] * sine, key * cosine + turned[1] * sine


batch_size = 4
sequence_length = 2048
heads = 32
key_heads = 8
head_size = 128
eps = 1e-6
SMALL_SIZES = [
    {"batch_size": 2, "sequence_length": 5, "heads": 3, "key_heads": 1, "head_size": 20},
    {"batch_size": 1, "sequence_length": 8, "heads": 4, "key_heads": 2, "head_size": 32},
]
MORE_SIZES = [{"batch_size": 64, "sequence_length": 1}, {"batch_size": 1, "sequence_length": 16384}]


def get_inputs():
    angles = (torch.rand(batch_size, 1, sequence_length, head_size // 2) * 6.28).repeat(1, 1, 1, 2)
    return [
        torch.randn(batch_size, heads, sequence_length, head_size, dtype=torch.bfloat16),
        torch.randn(batch_size, key_heads, sequence_length, head_size, dtype=torch.bfloat16),
        angles.cos().bfloat16(),
        angles.sin().bfloat16(),
    ]


def get_init_inputs():
    return [head_size, eps]
