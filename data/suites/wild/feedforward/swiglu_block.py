"""A feed-forward block: one product for gate and values, SwiGLU, a second product, the residual.

Occurs in every layer of Llama-like decoders. Compute-bound at many tokens; the activation belongs into a product.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, hidden, inner):
        super().__init__()
        self.gate_up = nn.Linear(hidden, 2 * inner, bias=False, dtype=torch.bfloat16)
        self.down = nn.Linear(inner, hidden, bias=False, dtype=torch.bfloat16)

    def forward(self, x):
        gate, up = self.gate_up(x).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


tokens = 2048
hidden = 4096
inner = 11008
SMALL_SIZES = [{"tokens": 5, "hidden": 37, "inner": 19}, {"tokens": 16, "hidden": 32, "inner": 64}]
MORE_SIZES = [{"tokens": 1}, {"tokens": 16}]


def get_inputs():
    return [torch.randn(tokens, hidden, dtype=torch.bfloat16)]


def get_init_inputs():
    return [hidden, inner]
