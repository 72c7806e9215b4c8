"""Two products with the weights of each token's own experts, SwiGLU between them, then the weighted sum.

Occurs while a mixture of experts decodes few tokens. Memory-bound by the weights: gathering them first doubles their traffic.
"""

import torch
import torch.nn.functional as F

TOKENS = 16
EXPERTS = 16
CHOSEN = 2
HIDDEN = 1024
INNER = 2048
SMALL_SIZES = [
    {"TOKENS": 3, "EXPERTS": 3, "CHOSEN": 2, "HIDDEN": 19, "INNER": 13},
    {"TOKENS": 4, "EXPERTS": 4, "CHOSEN": 2, "HIDDEN": 32, "INNER": 16},
]
MORE_SIZES = [{"TOKENS": 1}]


def gathered_experts(x, experts, weights, gate_up, down):
    gate, up = torch.einsum("th,tkih->tki", x, gate_up[experts]).chunk(2, dim=-1)
    out = torch.einsum("tki,tkhi->tkh", F.silu(gate) * up, down[experts])
    return (out * weights[..., None]).sum(dim=1)


def example_inputs():
    return (
        torch.randn(TOKENS, HIDDEN, dtype=torch.bfloat16),
        torch.rand(TOKENS, EXPERTS).topk(CHOSEN, dim=-1).indices,
        torch.rand(TOKENS, CHOSEN).softmax(dim=-1).bfloat16(),
        torch.randn(EXPERTS, 2 * INNER, HIDDEN, dtype=torch.bfloat16) * 0.05,
        torch.randn(EXPERTS, HIDDEN, INNER, dtype=torch.bfloat16) * 0.05,
    )
