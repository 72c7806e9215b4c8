"""One new token's attention over a cache of compressed keys, which are the values, too, and of a rotary part that all heads share.

Occurs in DeepSeek-V2 and V3 (multi-head latent attention, its weights absorbed). All heads read one cache, so it is near compute-bound.
"""

import torch

BATCH = 32
HEADS = 128
LENGTH = 4096
LATENT = 512
ROTARY = 64
SMALL_SIZES = [
    {"BATCH": 2, "HEADS": 3, "LENGTH": 37, "LATENT": 48, "ROTARY": 16},
    {"BATCH": 1, "HEADS": 16, "LENGTH": 64, "LATENT": 64, "ROTARY": 16},
]
MORE_SIZES = [{"BATCH": 1, "LENGTH": 16384}]


def latent_decode(query, query_rotary, latent, rotary, scale):
    scores = torch.einsum("bhc,blc->bhl", query, latent) + torch.einsum("bhr,blr->bhl", query_rotary, rotary)
    weights = torch.softmax(scores.float() * scale, dim=-1).to(latent.dtype)
    return torch.einsum("bhl,blc->bhc", weights, latent)


def example_inputs():
    return (
        torch.randn(BATCH, HEADS, LATENT, dtype=torch.bfloat16),
        torch.randn(BATCH, HEADS, ROTARY, dtype=torch.bfloat16),
        torch.randn(BATCH, LENGTH, LATENT, dtype=torch.bfloat16),
        torch.randn(BATCH, LENGTH, ROTARY, dtype=torch.bfloat16),
        0.0722,
    )
