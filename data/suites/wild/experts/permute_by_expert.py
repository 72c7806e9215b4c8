"""Sorts the copies of tokens by their expert and gathers their rows in that order; counts each expert's rows.

Occurs before grouped products of experts. Memory-bound: rows are read and written once, the sort is over short integers.
"""

import torch

TOKENS = 4096
CHOSEN = 4
EXPERTS = 64
HIDDEN = 2048
SMALL_SIZES = [{"TOKENS": 5, "CHOSEN": 2, "HIDDEN": 19}, {"TOKENS": 16, "CHOSEN": 1, "HIDDEN": 32}]
MORE_SIZES = [{"TOKENS": 64}]


def permute_by_expert(x, experts):
    flat = experts.flatten()
    order = torch.argsort(flat, stable=True)
    counts = torch.zeros(EXPERTS, dtype=torch.long, device=x.device).scatter_add(0, flat, torch.ones_like(flat))
    inverse = torch.empty_like(order).scatter(0, order, torch.arange(flat.shape[0], device=x.device))
    return x[order // experts.shape[1]], inverse, counts


def example_inputs():
    return torch.randn(TOKENS, HIDDEN, dtype=torch.bfloat16), torch.randint(0, EXPERTS, (TOKENS, CHOSEN))
