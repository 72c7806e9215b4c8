"""A matrix of each head that decays, forgets what the key held and takes the new value; the query reads it.

Occurs in Gated DeltaNet, Qwen3-Next and Kimi Linear. Bound by the chain of steps; chunks turn it into products.
"""

import torch

BATCH = 2
HEADS = 8
STEPS = 512
KEY_SIZE = 128
VALUE_SIZE = 128
SMALL_SIZES = [
    {"BATCH": 1, "HEADS": 3, "STEPS": 7, "KEY_SIZE": 11, "VALUE_SIZE": 13},
    {"BATCH": 2, "HEADS": 1, "STEPS": 16, "KEY_SIZE": 16, "VALUE_SIZE": 16},
]


def gated_delta_rule(query, key, value, decay, rate):
    query, key, value = query.float(), key.float(), value.float()
    state = torch.zeros(*key.shape[:2], key.shape[3], value.shape[3], device=key.device)
    results = []
    for step in range(key.shape[2]):
        k = key[:, :, step, :, None]
        state = state * decay[:, :, step, None, None].exp()
        held = (state * k).sum(dim=-2)
        new = (value[:, :, step] - held) * rate[:, :, step, None]
        state = state + k * new[:, :, None, :]
        results.append((state * query[:, :, step, :, None]).sum(dim=-2))
    return torch.stack(results, dim=2).bfloat16()


def example_inputs():
    keys, steps = (BATCH, HEADS, STEPS, KEY_SIZE), (BATCH, HEADS, STEPS)
    return (
        torch.randn(keys, dtype=torch.bfloat16) * KEY_SIZE**-0.5,
        torch.nn.functional.normalize(torch.randn(keys), dim=-1).bfloat16(),
        torch.randn(BATCH, HEADS, STEPS, VALUE_SIZE, dtype=torch.bfloat16),
        -torch.rand(steps) * 0.2,
        torch.rand(steps),
    )
