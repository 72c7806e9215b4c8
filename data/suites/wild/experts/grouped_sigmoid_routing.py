"""Routing by sigmoid scores and a correction: the best groups of experts by their best two, then the best experts of those.

Occurs in DeepSeek-V3 and Kimi K2. Memory-bound; several selections over one row of 256.
"""

import torch

TOKENS = 4096
EXPERTS = 256
GROUPS = 8
GROUPS_CHOSEN = 4
CHOSEN = 8
SMALL_SIZES = [{"TOKENS": 5}, {"TOKENS": 8}]
MORE_SIZES = [{"TOKENS": 16}]


def grouped_sigmoid_routing(logits, correction):
    scores = torch.sigmoid(logits)
    corrected = (scores + correction).view(-1, GROUPS, EXPERTS // GROUPS)
    group_scores = corrected.topk(2, dim=-1).values.sum(dim=-1)
    groups = group_scores.topk(GROUPS_CHOSEN, dim=-1).indices
    kept = torch.zeros_like(group_scores).scatter(1, groups, 1.0)
    masked = corrected.masked_fill(kept[..., None] == 0, float("-inf")).flatten(1)
    experts = masked.topk(CHOSEN, dim=-1).indices
    weights = scores.gather(1, experts)
    return 2.5 * weights / weights.sum(dim=-1, keepdim=True), experts


def example_inputs():
    return torch.randn(TOKENS, EXPERTS) * 2.0, torch.randn(EXPERTS) * 0.1
