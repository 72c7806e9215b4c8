"""One new token's attention over a window of its past; each head has a trained logit that takes a share of the weights.

Occurs in every second layer of gpt-oss, and in StreamingLLM in another form. Memory-bound by the window.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.sinks = nn.Parameter(torch.randn(heads, dtype=torch.bfloat16))

    def forward(self, query, key, value):
        scores = torch.einsum("bhd,bhld->bhl", query, key) * query.shape[-1] ** -0.5
        sinks = self.sinks[None, :, None].expand(query.shape[0], -1, 1)
        weights = torch.softmax(torch.cat((scores, sinks), dim=-1), dim=-1)[..., :-1]
        return torch.einsum("bhl,bhld->bhd", weights, value)


batch = 128
heads = 64
window = 128
head_size = 64
SMALL_SIZES = [
    {"batch": 2, "heads": 3, "window": 37, "head_size": 24},
    {"batch": 1, "heads": 4, "window": 64, "head_size": 32},
]


def get_inputs():
    return [
        torch.randn(batch, heads, head_size, dtype=torch.bfloat16),
        torch.randn(batch, heads, window, head_size, dtype=torch.bfloat16),
        torch.randn(batch, heads, window, head_size, dtype=torch.bfloat16),
    ]


def get_init_inputs():
    return [heads]
