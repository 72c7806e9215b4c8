"""Brings the experts' rows back into the order of tokens and adds them up by their weights, with a shared expert and the residual.

Occurs at the end of a mixture of experts. Memory-bound: each row is read once if the order is applied while reading.
"""

import torch

TOKENS = 8192
CHOSEN = 4
HIDDEN = 2048
SMALL_SIZES = [{"TOKENS": 5, "CHOSEN": 3, "HIDDEN": 19}, {"TOKENS": 16, "CHOSEN": 2, "HIDDEN": 32}]
MORE_SIZES = [{"TOKENS": 32}]


def combine_experts(rows, inverse, weights, shared, residual):
    back = rows[inverse].view(*weights.shape, -1)
    return residual + shared + (back.float() * weights[..., None]).sum(dim=1).to(rows.dtype)


def example_inputs():
    return (
        torch.randn(TOKENS * CHOSEN, HIDDEN, dtype=torch.bfloat16),
        torch.randperm(TOKENS * CHOSEN),
        torch.rand(TOKENS, CHOSEN).softmax(dim=-1),
        torch.randn(TOKENS, HIDDEN, dtype=torch.bfloat16),
        torch.randn(TOKENS, HIDDEN, dtype=torch.bfloat16),
    )
