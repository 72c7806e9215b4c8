"""A matrix of each head that decays at the head's own rate and takes the product of key and value; the query reads it.

Occurs in RetNet and Lightning Attention. Bound by the chain of steps as written; in chunks it is attention with a decaying mask.
"""

import torch

BATCH = 2
HEADS = 8
STEPS = 512
HEAD_SIZE = 64
SMALL_SIZES = [
    {"BATCH": 2, "HEADS": 3, "STEPS": 7, "HEAD_SIZE": 12},
    {"BATCH": 1, "HEADS": 2, "STEPS": 16, "HEAD_SIZE": 16},
]


def retention(query, key, value, decay):
    state = torch.zeros(*key.shape[:2], key.shape[3], value.shape[3], device=key.device)
    results = []
    for step in range(key.shape[2]):
        state = decay[:, None, None] * state + key[:, :, step, :, None].float() * value[:, :, step, None, :].float()
        results.append((query[:, :, step, None, :].float() @ state).squeeze(2))
    return torch.stack(results, dim=2).to(value.dtype)


def example_inputs():
    shape = (BATCH, HEADS, STEPS, HEAD_SIZE)
    return (
        torch.randn(shape, dtype=torch.float16) * HEAD_SIZE**-0.5,
        torch.randn(shape, dtype=torch.float16),
        torch.randn(shape, dtype=torch.float16),
        1.0 - torch.rand(HEADS) * 0.1 - 0.01,
    )
