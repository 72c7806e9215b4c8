"""Low-rank additions where each token has an adapter of its own.

Occurs where one server holds many LoRA adapters (Punica, S-LoRA). Memory-bound: adapters are gathered, products are thin.
"""

import torch

TOKENS = 256
ADAPTERS = 64
HIDDEN = 4096
RANK = 16
SMALL_SIZES = [
    {"TOKENS": 5, "ADAPTERS": 3, "HIDDEN": 37, "RANK": 3},
    {"TOKENS": 8, "ADAPTERS": 4, "HIDDEN": 64, "RANK": 16},
]


def adapters_by_token(y, x, shrink, expand, adapters):
    small = torch.bmm(shrink[adapters], x[:, :, None])
    return y + torch.bmm(expand[adapters], small).squeeze(-1)


def example_inputs():
    return (
        torch.randn(TOKENS, HIDDEN, dtype=torch.float16),
        torch.randn(TOKENS, HIDDEN, dtype=torch.float16),
        torch.randn(ADAPTERS, RANK, HIDDEN, dtype=torch.float16) * 0.02,
        torch.randn(ADAPTERS, HIDDEN, RANK, dtype=torch.float16) * 0.2,
        torch.randint(0, ADAPTERS, (TOKENS,)),
    )
