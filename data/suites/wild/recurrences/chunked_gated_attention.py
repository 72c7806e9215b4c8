"""Gated linear attention in chunks of 64 steps: products within a chunk, a state between them.

Occurs in GLA and Mamba 2 as they are trained. Compute-bound; few steps remain of the loop.
"""

import torch

BATCH = 4
HEADS = 8
CHUNKS = 16
CHUNK = 64
HEAD_SIZE = 64
SMALL_SIZES = [
    {"BATCH": 1, "HEADS": 2, "CHUNKS": 3, "CHUNK": 5, "HEAD_SIZE": 12},
    {"BATCH": 2, "HEADS": 1, "CHUNKS": 2, "CHUNK": 16, "HEAD_SIZE": 16},
]


def chunked_gated_attention(query, key, value, decay):
    total = decay.cumsum(dim=-1)
    apart = total[..., :, None] - total[..., None, :]
    places = torch.arange(decay.shape[-1], device=decay.device)
    within = torch.where(places[:, None] >= places[None, :], apart.exp(), 0.0)
    inner = ((query @ key.transpose(-1, -2)).float() * within).to(value.dtype) @ value
    state = torch.zeros(*key.shape[:2], key.shape[-1], value.shape[-1], device=key.device)
    results = []
    for chunk in range(key.shape[2]):
        now = total[:, :, chunk]
        outer = (query[:, :, chunk].float() * now[..., None].exp()) @ state
        results.append(inner[:, :, chunk] + outer.to(inner.dtype))
        rest = (now[..., -1:] - now).exp()
        taken = (key[:, :, chunk].float() * rest[..., None]).transpose(-1, -2) @ value[:, :, chunk].float()
        state = now[..., -1, None, None].exp() * state + taken
    return torch.stack(results, dim=2)


def example_inputs():
    shape = (BATCH, HEADS, CHUNKS, CHUNK, HEAD_SIZE)
    return (
        torch.randn(shape, dtype=torch.bfloat16) * HEAD_SIZE**-0.5,
        torch.randn(shape, dtype=torch.bfloat16),
        torch.randn(shape, dtype=torch.bfloat16),
        -torch.rand(shape[:-1]) * 0.1,
    )
