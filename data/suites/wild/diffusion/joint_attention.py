"""Attention over the tokens of text and image together; each stream norms its own queries and keys, and gets its own result back.

Occurs in SD3 and Flux. Compute-bound; the joined tensors need not be written.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, head_size):
        super().__init__()
        self.weights = nn.Parameter(1.0 + 0.2 * torch.randn(4, head_size, dtype=torch.bfloat16))

    def normed(self, x, weight):
        return F.rms_norm(x, (x.shape[-1],), weight, 1e-6)

    def forward(self, text, image):
        queries, keys, values = [], [], []
        for index, stream in enumerate((text, image)):
            query, key, value = stream.unbind(2)
            queries.append(self.normed(query, self.weights[2 * index]))
            keys.append(self.normed(key, self.weights[2 * index + 1]))
            values.append(value)
        query, key, value = (torch.cat(parts, dim=1).transpose(1, 2) for parts in (queries, keys, values))
        joined = F.scaled_dot_product_attention(query, key, value).transpose(1, 2)
        return joined[:, : text.shape[1]].flatten(2), joined[:, text.shape[1] :].flatten(2)


batch = 2
text_tokens = 512
image_tokens = 4096
heads = 24
head_size = 128
SMALL_SIZES = [
    {"batch": 1, "text_tokens": 5, "image_tokens": 19, "heads": 3, "head_size": 32},
    {"batch": 2, "text_tokens": 16, "image_tokens": 32, "heads": 2, "head_size": 16},
]


def get_inputs():
    return [
        torch.randn(batch, text_tokens, 3, heads, head_size, dtype=torch.bfloat16),
        torch.randn(batch, image_tokens, 3, heads, head_size, dtype=torch.bfloat16),
    ]


def get_init_inputs():
    return [head_size]
