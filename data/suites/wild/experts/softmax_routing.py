"""Softmax of router logits, the best eight experts of each token, their weights made to add up to one.

Occurs in Mixtral, Qwen3-MoE and OLMoE before tokens go to their experts. Memory-bound, small rows.
"""

import torch

TOKENS = 16384
EXPERTS = 128
CHOSEN = 8
SMALL_SIZES = [{"TOKENS": 7, "EXPERTS": 19}, {"TOKENS": 16, "EXPERTS": 32}]
MORE_SIZES = [{"TOKENS": 32}, {"EXPERTS": 8, "CHOSEN": 2}]


def softmax_routing(logits):
    weights, experts = torch.topk(torch.softmax(logits.float(), dim=-1), CHOSEN, dim=-1)
    return weights / weights.sum(dim=-1, keepdim=True), experts


def example_inputs():
    # distinct within a row, so that no order of equal ones is asked for
    noise = torch.rand(TOKENS, EXPERTS).argsort(dim=-1).float()
    return ((noise * (8.0 / EXPERTS) - 4.0).bfloat16(),)
